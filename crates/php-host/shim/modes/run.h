/* Runs a worker's requests, with the guard that ends PHP's bailouts. */
#ifndef HOWDAH_MODES_RUN_H
#define HOWDAH_MODES_RUN_H

#include "shim.h"

/* A step of a mode; a PHP bailout may leave it. */
typedef shim_outcome (*shim_step)(void);

/* Takes requests from the lane, each of which begins with `begin` and ends with `end`, whatever the script does.
 * Returns the process's exit status. */
int shim_run_requests(shim_step begin, shim_step end);
/* Runs a script that takes the requests itself (script_loop.h), to its end. Returns the process's exit status. */
int shim_run_script(shim_step begin, shim_step end);

#endif
