/* The process environment as elements of $_SERVER, see environment.c. */
#ifndef HOWDAH_SAPI_ENVIRONMENT_H
#define HOWDAH_SAPI_ENVIRONMENT_H

#include "shim.h"

/* Reads the environment, once per process, by `import`, PHP's own function. Needs an open request of PHP. */
void shim_environment_keep(void (*import)(zval *array));
/* Adds the environment to an array, as `import` does. An empty array is replaced. */
void shim_add_environment(zval *array, void (*import)(zval *array));

#endif
