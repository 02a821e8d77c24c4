/* What the two files that make $_SERVER share: server_array.c makes it anew, server_array_reuse.c from that of the
 * request before. */
#ifndef HOWDAH_SAPI_SERVER_ARRAY_REUSE_H
#define HOWDAH_SAPI_SERVER_ARRAY_REUSE_H

#include "shim.h"

/* The interned name of a variable that travels as a number, or NULL. */
zend_string *shim_known_key(const WireVar *var);
/* Adds the request's variables from number `first` on, and PHP_SELF. */
void shim_add_request_variables(zval *array, uint32_t first);

/* --- server_array_reuse.c --- */

void shim_kept_startup(void);
/* Puts the kept array, brought up to date, in place of an empty one. False: there is none. */
bool shim_kept_reuse(zval *array);
/* Keeps an array that has `environment` elements of the process environment and then the request's. */
void shim_kept_store(zval *array, uint32_t environment);

#endif
