/* Classic mode: each request is a whole PHP request and leaves no state for the next one, as in PHP-FPM and mod_php. */
#include "shim.h"
#include "modes/mode.h"
#include "modes/modes.h"
#include "modes/run.h"
#include "process/timer_signal.h"
#include "sapi/opcache_lock.h"
#include "sapi/whole_request.h"

static void watch_calls(void) {
    shim_timer_signal_keep();
    shim_opcache_lock_watch();
}

static int work(void) {
    return shim_run_requests(shim_whole_request_run, shim_whole_request_end);
}

const shim_mode shim_mode_classic = {
    .name = "classic",
    .ini = "",
    .directory_settings = true,
    .after_php = watch_calls,
    .work = work,
    .client_gone = php_handle_aborted_connection,
};
