/* The request that this worker runs: taking it from the lane, ending its response, reporting it done, and whether the
 * worker may take another one. */
#include "sapi/current_request.h"

#include "shim.h"
#include "process/changes.h"
#include "sapi/log.h"
#include "sapi/server_array.h"

#include <fcntl.h>
#include <stdio.h>
#include <syslog.h>
#include <unistd.h>

/* The kernel is asked for the memory after each so many requests. */
#define MEMORY_CHECK 16

shim_state shim;

void shim_request_set(const WireRequest *request) {
    shim.request = request;
    shim.vars = (const WireVar *)(request + 1);
    shim.strings = (const char *)(shim.vars + request->n_vars);
    shim.response_ended = false;
    shim.response_refused = false;
    shim.peak_memory = 0;
}

bool shim_request_take(void) {
    const WireRequest *request = howdah_rs_next_request();
    if (request == NULL) {
        return false;
    }
    shim_request_set(request);
    return true;
}

void shim_request_finish(bool retire) {
    if (shim.script_child) {
        _exit(EG(exit_status));
    }
    shim_response_end(true);
    shim_server_array_reset();
    shim.request = NULL;
    shim.requests_done++;
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
    const char *changed = shim_changes_left();
    if (changed != NULL) {
        shim_log(LOG_NOTICE, "worker replaced: the script has changed %s, which stays with its process", changed);
        return true;
    }
    if (shim.worker->max_requests != 0 && shim.requests_done + 1 >= shim.worker->max_requests) {
        return true;
    }
    if (shim.worker->max_memory == 0) {
        return false;
    }
    /* PHP's own count costs nothing; the kernel's, which sees leaks of libraries too, a few microseconds. */
    return zend_memory_usage(true) > shim.worker->max_memory ||
           (shim.requests_done % MEMORY_CHECK == 0 && own_memory() > shim.worker->max_memory);
}
