/* Copying scattered variables to an image and back. See places.h. */
#include "places.h"

#include <stdlib.h>
#include <string.h>

void places_add(places *list, void *at, size_t size) {
    char *next = at;
    if (list->n_words + size / 8 > PLACES_WORDS || list->n_halves == PLACES_PARTS ||
        list->n_bytes + size % 4 > PLACES_PARTS) {
        abort(); /* caught by any test of the mode */
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

size_t places_size(const places *list) {
    return (size_t)list->n_words * 8 + (size_t)list->n_halves * 4 + list->n_bytes;
}

void places_save(const places *list, unsigned char *image) {
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

void places_load(const places *list, const unsigned char *image) {
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

size_t places_offset(const places *list, const void *at) {
    size_t i = 0;
    while (list->words[i] != at) {
        i++;
    }
    return i * 8;
}
