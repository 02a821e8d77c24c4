/* Globals that extensions do not export. */
#ifndef HOWDAH_GLOBALS_EXTENSIONS_H
#define HOWDAH_GLOBALS_EXTENSIONS_H

#include "shim.h"

/* State of the running code: passes the places to `add`; empties them for a new coroutine; frees their content at its
 * end. */
void globals_extensions_running_places(void (*add)(void *at, size_t size));
void globals_extensions_running_begin(void);
void globals_extensions_running_end(void);
/* State of a request, as in libraries.h. */
void globals_extensions_request_places(void (*add)(void *at, size_t size));
void globals_extensions_request_inherit(void);
void globals_extensions_request_destroy(void);
/* For modes with one request after the other, as in libraries.h. */
void globals_extensions_remember(void);
void globals_extensions_reset(void);

#endif
