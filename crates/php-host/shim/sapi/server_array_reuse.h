/* $_SERVER made from that of the request before, where server_array.c would make it anew. */
#ifndef HOWDAH_SAPI_SERVER_ARRAY_REUSE_H
#define HOWDAH_SAPI_SERVER_ARRAY_REUSE_H

#include "shim.h"

/* Maximum number of kept arrays. */
#define SHIM_KEPT_SERVER_ARRAYS 32
/* Lets go of the $_SERVER that a resident script's requests share, while PHP's memory is still there. */
void shim_kept_forget(void);
void shim_kept_startup(void);
/* Puts the kept array, brought up to date, in place of an empty one. False: there is none. */
bool shim_kept_reuse(zval *array);
/* Keeps an array that has `environment` elements of the process environment and then the request's. */
void shim_kept_store(zval *array, uint32_t environment);

#endif
