/* The request that this worker runs: taking it from the lane, ending its response, reporting it done. */
#include "sapi/current_request.h"

#include "shim.h"
#include "sapi/opcache_lock.h"
#include "sapi/server_array.h"

#include <unistd.h>

/* Milliseconds for which an idle worker keeps OPcache's lock. */
#define KEPT_WHILE_IDLE_MS 100

shim_state shim;

void shim_request_set(const WireRequest *request) {
    shim.request = request;
    shim.vars = (const WireVar *)(request + 1);
    shim.strings = (const char *)(shim.vars + request->n_vars);
    shim.places_known = false;
    shim.response_ended = false;
    shim.response_refused = false;
    shim.peak_memory = 0;
}

bool shim_request_take(void) {
    bool idle = false;
    const WireRequest *request = howdah_rs_next_request(shim_opcache_lock_is_kept() ? KEPT_WHILE_IDLE_MS : 0, &idle);
    if (idle) {
        shim_opcache_lock_release();
        request = howdah_rs_next_request(0, &idle);
    }
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
