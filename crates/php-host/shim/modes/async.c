/* Async mode: the worker script of worker mode, but its handler runs for many requests at once, each in a coroutine.
 * While one waits for a database, another server or a timer, the others run. frankenphp_handle_request() does not
 * return between requests; it returns false when the worker must end and has finished its requests. */
#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/request.h"
#include "async/core/serving.h"
#include "async/isolation/exclusive_connections.h"
#include "async/isolation/non_preemptible.h"
#include "modes/mode.h"
#include "modes/modes.h"
#include "modes/run.h"
#include "modes/script_loop.h"
#include "sapi/embedded.h"
#include "sapi/log.h"
#include "sapi/server_array_reuse.h"

#include <syslog.h>
#include <unistd.h>

/* --- the library --- */

/* Runs the PHP files of the namespace Howdah (classes and functions), before the worker script and in the same request
 * of PHP. False: the build is broken, and PHP has logged the reason. */
static bool run_library(void) {
    const char *path, *text;
    size_t length;
    uint64_t changed;
    for (size_t i = 0; howdah_rs_library(i, &path, &text, &length, &changed); i++) {
        if (!shim_embedded_run(path, text, length, changed)) {
            shim_log(LOG_CRIT, "%s of the async library failed to run; the worker ends", path);
            return false;
        }
    }
    return true;
}

SHIM_EXPORT void howdah_c_compile_library(void) {
    /* The library is compiled inside the script's request. A worker reports an unreadable script. */
    if (access(shim.worker->script, R_OK) != 0) {
        return;
    }
    zend_first_try {
        if (shim_loop_open_script(shim.worker->script)) {
            run_library();
        }
    }
    zend_end_try();
}

/* --- serving --- */

static shim_outcome run(void) {
    coroutine_available = true;
    if (!shim_loop_open_script(shim.worker->script) || !run_library()) {
        return SHIM_RETIRE;
    }
    shim_loop_execute_script(shim.worker->script);
    return SHIM_RETIRE;
}

static int work(void) {
    return shim_run_script(run, shim_loop_close_script);
}

/* A process that a script forked takes no requests, and a script can serve only once. */
static bool serve(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    if (!shim.script_child && shim_loop_booting()) {
        shim_loop_boot_end();
        async_serve(function, cache);
        shim_loop_leave();
    }
    return false;
}

static void guard_functions(void) {
    if (async_exclusive_install()) {
        async_guard_install();
    }
}

const shim_mode shim_mode_async = {
    .name = "async",
    /* The just-in-time compiler has not been tested with many stacks. */
    .ini = SHIM_LOOP_INI "opcache.jit=disable\n",
    .kept_server_arrays = SHIM_KEPT_SERVER_ARRAYS,
    .after_php = guard_functions,
    .work = work,
    .serve = serve,
    .takes_output = async_output_to_main,
    .boot_variables = shim_loop_boot_variables,
    .unsent_output = shim_loop_unsent_output,
    .client_gone = shim_loop_client_gone,
};
