/* A list of places in PHP's globals that move together: what a coroutine has, what a request has. Saving them is
 * copying them into an image, word by word, because most of them are a word or two and a loop without decisions does
 * that in a fraction of the time. */
#ifndef HOWDAH_PLACES_H
#define HOWDAH_PLACES_H

#include <stddef.h>
#include <stdint.h>

#define PLACES_WORDS 512
#define PLACES_PARTS 96

typedef struct places {
    /* By size: 8 bytes, 4, 1. In an image they lie in this order. */
    void *words[PLACES_WORDS];
    void *halves[PLACES_PARTS];
    void *bytes[PLACES_PARTS];
    uint32_t n_words, n_halves, n_bytes;
} places;

/* Adds a variable. */
void places_add(places *list, void *at, size_t size);
/* The size of an image. */
size_t places_size(const places *list);
void places_save(const places *list, unsigned char *image);
void places_load(const places *list, const unsigned char *image);
/* Where a variable, whose size is a number of words, lies in an image. */
size_t places_offset(const places *list, const void *at);

#endif
