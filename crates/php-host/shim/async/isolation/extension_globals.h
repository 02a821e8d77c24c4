/* Globals of extensions that do not export them. */
#ifndef HOWDAH_ASYNC_ISOLATION_EXTENSION_GLOBALS_H
#define HOWDAH_ASYNC_ISOLATION_EXTENSION_GLOBALS_H

#include "shim.h"

/* What belongs to the code that runs: names the places to `add`; empties them for a new coroutine; frees what they hold
 * at its end. */
void async_extensions_running_places(void (*add)(void *at, size_t size));
void async_extensions_running_begin(void);
void async_extensions_running_end(void);
/* What belongs to a request, as in library_globals.c. */
void async_extensions_request_places(void (*add)(void *at, size_t size));
void async_extensions_request_inherit(void);
void async_extensions_request_destroy(void);

#endif
