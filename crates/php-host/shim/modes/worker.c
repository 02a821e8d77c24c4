/* Worker mode: a script boots an application and takes request after request with frankenphp_handle_request(); all
 * state it creates stays for the next request. The contract is FrankenPHP's; script_loop.c implements it.
 *
 * The process ends with its script, whatever ended it, and the server starts a fresh one: no state of PHP survives from
 * one run of the script to the next. */
#include "shim.h"
#include "modes/mode.h"
#include "modes/modes.h"
#include "modes/run.h"
#include "modes/script_loop.h"
#include "process/timer_signal.h"
#include "sapi/debugger.h"

static shim_outcome run(void) {
    shim_debugger_prepare(SHIM_DEBUG_BOOT_TOO);
    return shim_loop_run_script(shim.worker->script);
}

static int work(void) {
    return shim_run_script(run, shim_loop_close_script);
}

const shim_mode shim_mode_worker = {
    .name = "worker",
    .ini = SHIM_LOOP_INI,
    .keeps_settings = true,
    .kept_server_arrays = 1,
    .keeps_memory = true,
    .after_php = shim_timer_signal_keep,
    .work = work,
    .serve = shim_loop_turn,
    .boot_variables = shim_loop_boot_variables,
    .unsent_output = shim_loop_unsent_output,
    .client_gone = shim_loop_client_gone,
};
