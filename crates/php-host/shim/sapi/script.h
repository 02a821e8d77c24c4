/* The current request's script. */
#ifndef HOWDAH_SAPI_SCRIPT_H
#define HOWDAH_SAPI_SCRIPT_H

#include "shim.h"

/* Opens nothing: checks that the current request's script may run, goes to its directory and describes it to PHP.
 * Returns 0, or the HTTP status to answer with. */
unsigned shim_script_prepare(zend_file_handle *file);
/* Watches chdir(), after PHP's modules have started. */
void shim_script_startup(void);

#endif
