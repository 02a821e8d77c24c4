/* The current request's script. */
#ifndef HOWDAH_SAPI_SCRIPT_H
#define HOWDAH_SAPI_SCRIPT_H

#include "shim.h"

/* Checks that the current request's script may run, changes to its directory and describes it to PHP; opens no file.
 * Returns 0, or the HTTP status to respond with. */
unsigned shim_script_prepare(zend_file_handle *file);
/* Runs a script that is prepared, and sets the response's `fastcgi.error_header` if it fails. */
void shim_script_execute(zend_file_handle *file);
/* Watches chdir(). Called after PHP's modules have started. */
void shim_script_startup(void);

#endif
