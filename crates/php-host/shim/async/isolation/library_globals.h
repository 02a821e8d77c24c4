/* Globals of libraries that are more than values. */
#ifndef HOWDAH_ASYNC_ISOLATION_LIBRARY_GLOBALS_H
#define HOWDAH_ASYNC_ISOLATION_LIBRARY_GLOBALS_H

#include "shim.h"

/* Names the places to `add`; makes what is nobody's the request's own; ends what the request had. */
void async_libraries_places(void (*add)(void *at, size_t size));
void async_libraries_inherit(void);
void async_libraries_destroy(void);
/* An extension's globals; NULL: it is not loaded, or they are smaller than its headers say. */
void *async_globals_of(const char *extension, size_t size);
/* Where an extension has the error of the last call, as its first global; NULL: it is not loaded. */
int *async_last_error_of(const char *extension);

#endif
