/* A list of places in PHP's globals that move together: what a coroutine has, what a request has. Saving them is
 * copying them into an image, word by word, because most of them are a word or two and a loop without decisions does
 * that in a fraction of the time. */
#ifndef HOWDAH_ASYNC_ISOLATION_SWAP_LIST_H
#define HOWDAH_ASYNC_ISOLATION_SWAP_LIST_H

#include <stddef.h>
#include <stdint.h>

#define SWAP_LIST_WORDS 512
#define SWAP_LIST_PARTS 96

typedef struct swap_list {
    /* By size: 8 bytes, 4, 1. In an image they lie in this order. */
    void *words[SWAP_LIST_WORDS];
    void *halves[SWAP_LIST_PARTS];
    void *bytes[SWAP_LIST_PARTS];
    uint32_t n_words, n_halves, n_bytes;
} swap_list;

/* Adds a variable. */
void swap_list_add(swap_list *list, void *at, size_t size);
/* The size of an image. */
size_t swap_list_size(const swap_list *list);
void swap_list_save(const swap_list *list, unsigned char *image);
void swap_list_load(const swap_list *list, const unsigned char *image);
/* Where a variable, whose size is a number of words, lies in an image. */
size_t swap_list_offset(const swap_list *list, const void *at);

#endif
