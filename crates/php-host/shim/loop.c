/* The worker's one loop, with the one zend_try around a call. A mode says what happens in each step; taking a call from
 * the lane and reporting it done are here, so that a mode which loops inside a script uses the same two functions. */
#include "shim.h"
#include "worker_loop.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* The kernel is asked for the memory after each so many calls. */
#define MEMORY_CHECK 16

shim_state shim;

void shim_call_set(const WireCall *call) {
    shim.call = call;
    shim.vars = (const WireVar *)(call + 1);
    shim.strings = (const char *)(shim.vars + call->n_vars);
    shim.response_ended = false;
    shim.response_refused = false;
    shim.peak_memory = 0;
}

bool shim_call_take(void) {
    const WireCall *call = howdah_rs_next_call();
    if (call == NULL) {
        return false;
    }
    shim_call_set(call);
    return true;
}

void shim_call_finish(bool retire) {
    if (shim.script_child) {
        _exit(EG(exit_status));
    }
    shim_response_end(true);
    shim_server_array_reset();
    shim.call = NULL;
    shim.calls_done++;
    howdah_rs_done(shim.peak_memory, retire);
}

bool shim_response_end(bool done_follows) {
    if (shim.response_ended) {
        return false;
    }
    shim.response_ended = true;
    howdah_rs_end_response(done_follows);
    return true;
}

/* Memory that is this process's alone: what it shares with the zygote and with OPcache is not its own to leak. */
static size_t own_memory(void) {
    char text[128];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    unsigned long resident = 0, shared = 0;
    if (sscanf(text, "%*u %lu %lu", &resident, &shared) != 2 || resident < shared) {
        return 0;
    }
    return (resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

bool shim_used_up(void) {
    if (shim.worker->max_requests != 0 && shim.calls_done + 1 >= shim.worker->max_requests) {
        return true;
    }
    if (shim.worker->max_memory == 0) {
        return false;
    }
    /* PHP's own count costs nothing; the kernel's, which sees leaks of libraries too, a few microseconds. */
    return zend_memory_usage(true) > shim.worker->max_memory ||
           (shim.calls_done % MEMORY_CHECK == 0 && own_memory() > shim.worker->max_memory);
}

/* Runs a step of a mode; a bailout that PHP did not catch itself ends it here. */
static shim_outcome guarded(shim_outcome (*step)(void), shim_outcome after_bailout) {
    volatile shim_outcome outcome = after_bailout;
    zend_first_try {
        outcome = step();
    }
    zend_end_try();
    return outcome;
}

/* Runs one call to its end, whatever the script does. A bailout out of the script ends that script only; one out of the
 * clean-up leaves a state that nobody knows. */
static shim_outcome run_call(const shim_mode *mode) {
    shim_outcome run = guarded(mode->run, SHIM_DONE);
    shim_outcome after = guarded(mode->after, SHIM_RETIRE);
    return run == SHIM_RETIRE ? run : after;
}

/* Runs a script that takes the calls itself, to its end. */
static int run_resident(const shim_mode *mode) {
    guarded(mode->run, SHIM_RETIRE);
    guarded(mode->after, SHIM_RETIRE);
    int status = shim_loop_exit_status();
    if (shim.call != NULL) {
        shim_call_finish(true);
    }
    return status;
}

SHIM_EXPORT int howdah_c_worker_run(void) {
    const shim_mode *mode = shim.mode;
    /* Now, not at startup: PHP passes signals on to the handlers that are installed at this moment. */
    SHIM_SIGNALS_STARTUP();
    shim_fork_watch();
    if (mode->boot != NULL && guarded(mode->boot, SHIM_RETIRE) == SHIM_RETIRE) {
        return 1;
    }
    if (mode->resident) {
        return run_resident(mode);
    }
    howdah_rs_ready();
    bool retire = false;
    while (!retire && shim_call_take()) {
        retire = run_call(mode) == SHIM_RETIRE || shim_used_up();
        shim_call_finish(retire);
        if (mode->reset != NULL) {
            mode->reset();
        }
    }
    return 0;
}
