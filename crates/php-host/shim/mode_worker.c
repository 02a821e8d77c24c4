/* Worker mode: a script boots an application and takes call after call with frankenphp_handle_request(); everything
 * that it has made stays for the next call. The contract is FrankenPHP's; worker_loop.c has what happens in a call.
 *
 * The process ends with its script, whatever ended it, and the server puts a fresh one in its place: no state of PHP is
 * carried from one run of the script to the next. */
#include "worker_loop.h"

static shim_outcome run(void) {
    return shim_loop_run_script(shim.worker->script);
}

const shim_mode shim_mode_worker = {
    .name = "worker",
    .resident = true,
    .run = run,
    .after = shim_loop_close_script,
};
