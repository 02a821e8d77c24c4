/* A list of variables in PHP's globals that are swapped together: those of a coroutine, those of a request. Saving
 * copies them into an image, word by word: most of them are one or two words, and a loop without branches takes a
 * fraction of the time. */
#ifndef HOWDAH_ASYNC_ISOLATION_SWAP_LIST_H
#define HOWDAH_ASYNC_ISOLATION_SWAP_LIST_H

#include <stddef.h>
#include <stdint.h>

#define SWAP_LIST_WORDS 512
#define SWAP_LIST_PARTS 96

typedef struct swap_list {
    /* By size: 8 bytes, 4, 1. An image has the same order. */
    void *words[SWAP_LIST_WORDS];
    void *halves[SWAP_LIST_PARTS];
    void *bytes[SWAP_LIST_PARTS];
    uint32_t n_words, n_halves, n_bytes;
} swap_list;

/* Adds a variable. */
void swap_list_add(swap_list *list, void *at, size_t size);
/* Returns the size of an image. */
size_t swap_list_size(const swap_list *list);
void swap_list_save(const swap_list *list, unsigned char *image);
void swap_list_load(const swap_list *list, const unsigned char *image);
/* Returns the offset in an image of a variable whose size is a multiple of a word. */
size_t swap_list_offset(const swap_list *list, const void *at);

#endif
