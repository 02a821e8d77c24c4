/* Runs a worker's requests inside the one zend_try around a request. There are two variants; a mode uses one. */
#include "modes/run.h"

#include "shim.h"
#include "modes/mode.h"
#include "modes/script_loop.h"
#include "process/fork.h"
#include "process/wear.h"
#include "sapi/current_request.h"

/* Runs a step of a mode and catches a bailout that PHP did not catch itself. */
static shim_outcome guarded(shim_step step, shim_outcome after_bailout) {
    volatile shim_outcome outcome = after_bailout;
    zend_first_try {
        outcome = step();
    }
    zend_end_try();
    return outcome;
}

/* A bailout from the script ends that script only; one from the clean-up leaves an unknown state. */
static shim_outcome run_request(shim_step begin, shim_step end) {
    shim_outcome begun = guarded(begin, SHIM_DONE);
    shim_outcome ended = guarded(end, SHIM_RETIRE);
    return begun == SHIM_RETIRE ? begun : ended;
}

int shim_run_requests(shim_step begin, shim_step end) {
    howdah_rs_ready();
    bool retire = false;
    while (!retire && shim_request_take()) {
        retire = run_request(begin, end) == SHIM_RETIRE || shim_used_up();
        shim_request_finish(retire);
    }
    return 0;
}

int shim_run_script(shim_step begin, shim_step end) {
    guarded(begin, SHIM_RETIRE);
    guarded(end, SHIM_RETIRE);
    int status = shim_loop_exit_status();
    if (shim.request != NULL) {
        shim_request_finish(true);
    }
    return status;
}

SHIM_EXPORT int howdah_c_worker_run(void) {
    /* Again, not only at startup: PHP passes signals on to the handlers that are installed at this moment. */
    SHIM_SIGNALS_STARTUP();
    shim_fork_watch();
    return shim.mode->work();
}
