/* Runs a worker's requests, with the guard that catches PHP's bailouts. */
#ifndef HOWDAH_MODES_RUN_H
#define HOWDAH_MODES_RUN_H

#include "shim.h"

/* A step of a mode; may exit by a PHP bailout. */
typedef shim_outcome (*shim_step)(void);

/* Takes requests from the lane. Each one begins with `begin` and ends with `end`, whatever the script does. Returns the
 * process's exit status. */
int shim_run_requests(shim_step begin, shim_step end);
/* Runs to its end a script that takes the requests itself (script_loop.h). Returns the process's exit status. */
int shim_run_script(shim_step begin, shim_step end);

#endif
