/* $_SERVER, $_ENV and getenv(). */
#ifndef HOWDAH_SAPI_SERVER_ARRAY_H
#define HOWDAH_SAPI_SERVER_ARRAY_H

#include "shim.h"

/* Makes the interned names, while PHP's modules start. */
void shim_server_array_startup(void);
/* Puts the request's variables where PHP looks for the environment ($_ENV, getenv()) and watches ext/filter, after
 * PHP's modules have started. */
void shim_server_array_hook(void);
/* Forgets the finished request. */
void shim_server_array_reset(void);
/* How many arrays there is room for. */
#define SHIM_KEPT_SERVER_ARRAYS 32
/* Lets go of the $_SERVER that a resident script's requests share, while PHP's memory is still there. */
void shim_kept_forget(void);
void shim_sapi_register_variables(zval *array);

#endif
