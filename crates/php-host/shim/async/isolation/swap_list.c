/* Copies scattered variables to an image and back. See swap_list.h. */
#include "async/isolation/swap_list.h"

#include <stdlib.h>
#include <string.h>

void swap_list_add(swap_list *list, void *at, size_t size) {
    char *next = at;
    if (list->n_words + size / 8 > SWAP_LIST_WORDS || list->n_halves == SWAP_LIST_PARTS ||
        list->n_bytes + size % 4 > SWAP_LIST_PARTS) {
        abort(); /* any test of the mode hits this */
    }
    for (; size >= 8; size -= 8, next += 8) {
        list->words[list->n_words++] = next;
    }
    if (size >= 4) {
        list->halves[list->n_halves++] = next;
        size -= 4;
        next += 4;
    }
    for (; size > 0; size--) {
        list->bytes[list->n_bytes++] = next++;
    }
}

size_t swap_list_size(const swap_list *list) {
    return (size_t)list->n_words * 8 + (size_t)list->n_halves * 4 + list->n_bytes;
}

void swap_list_save(const swap_list *list, unsigned char *image) {
    for (uint32_t i = 0, n = list->n_words; i < n; i++, image += 8) {
        memcpy(image, list->words[i], 8);
    }
    for (uint32_t i = 0, n = list->n_halves; i < n; i++, image += 4) {
        memcpy(image, list->halves[i], 4);
    }
    for (uint32_t i = 0, n = list->n_bytes; i < n; i++) {
        memcpy(image++, list->bytes[i], 1);
    }
}

void swap_list_load(const swap_list *list, const unsigned char *image) {
    for (uint32_t i = 0, n = list->n_words; i < n; i++, image += 8) {
        memcpy(list->words[i], image, 8);
    }
    for (uint32_t i = 0, n = list->n_halves; i < n; i++, image += 4) {
        memcpy(list->halves[i], image, 4);
    }
    for (uint32_t i = 0, n = list->n_bytes; i < n; i++) {
        memcpy(list->bytes[i], image++, 1);
    }
}

size_t swap_list_offset(const swap_list *list, const void *at) {
    size_t i = 0;
    while (list->words[i] != at) {
        i++;
    }
    return i * 8;
}
