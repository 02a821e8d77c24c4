/* Reuses $_SERVER of the previous request where server_array.c would build it again. */
#ifndef HOWDAH_SAPI_SERVER_ARRAY_REUSE_H
#define HOWDAH_SAPI_SERVER_ARRAY_REUSE_H

#include "shim.h"

/* Number of arrays kept in async mode, for concurrent requests. Worker and snapshot mode keep one. */
#define SHIM_KEPT_SERVER_ARRAYS 32
/* Releases the $_SERVER arrays that a resident script's requests share, while PHP's memory still exists. */
void shim_kept_forget(void);
void shim_kept_startup(void);
/* Replaces an empty array with the updated kept one. False if there is none that can be updated. */
bool shim_kept_reuse(zval *array);
/* Keeps an array that begins with `environment` elements of the process environment, followed by the request's. */
void shim_kept_store(zval *array, uint32_t environment);

#endif
