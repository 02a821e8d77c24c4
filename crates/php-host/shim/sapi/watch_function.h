/* Internal functions of PHP that the shim runs code before. */
#ifndef HOWDAH_SAPI_WATCH_FUNCTION_H
#define HOWDAH_SAPI_WATCH_FUNCTION_H

#include "shim.h"

/* Puts `handler` before an internal function; returns the function's own handler, or NULL when there is no such
 * function. */
zif_handler shim_watch_function(const char *name, size_t name_len, zif_handler handler);

#endif
