/* $_SERVER, $_ENV and getenv(). */
#ifndef HOWDAH_SAPI_SERVER_ARRAY_H
#define HOWDAH_SAPI_SERVER_ARRAY_H

#include "shim.h"

/* Puts the request's variables where PHP looks for the environment ($_ENV, getenv()) and watches ext/filter. Called
 * after PHP's modules have started. */
void shim_server_array_hook(void);
/* Prepares the data in this process from which each array is made. Called within a request of PHP. */
void shim_server_array_prepare(void);
/* Forgets the finished request. */
void shim_server_array_reset(void);
void shim_sapi_register_variables(zval *array);

#endif
