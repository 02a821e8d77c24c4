/* Runs code of the shim before internal functions of PHP. */
#ifndef HOWDAH_SAPI_WATCH_FUNCTION_H
#define HOWDAH_SAPI_WATCH_FUNCTION_H

#include "shim.h"

/* Replaces the handler of an internal function. Returns the previous handler, or NULL if there is no such function. */
zif_handler shim_watch_function(const char *name, size_t name_len, zif_handler handler);

#endif
