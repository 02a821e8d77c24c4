/* The variables of a request as elements of an array. */
#ifndef HOWDAH_SAPI_REQUEST_VARIABLES_H
#define HOWDAH_SAPI_REQUEST_VARIABLES_H

#include "shim.h"

/* Makes the interned names. Called while PHP's modules start. */
void shim_request_variables_startup(void);
/* Returns the interned name of a variable that is transferred as a number, or NULL. */
zend_string *shim_known_key(const WireVar *var);
/* Adds the request's variables from number `first` on. */
void shim_add_variables(zval *array, uint32_t first);
/* Adds those variables, and PHP_SELF. */
void shim_add_request_variables(zval *array, uint32_t first);
/* Returns the script's name followed by PATH_INFO; free it with efree(). */
char *shim_php_self(size_t *length);

#endif
