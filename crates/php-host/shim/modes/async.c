/* Async mode: the worker script of worker mode, but its handler runs for many requests at once, each in a coroutine.
 * While one waits for a database, another server or a clock, the others run. frankenphp_handle_request() does not
 * return between requests; it returns false when the server has no more. */
#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/request.h"
#include "async/core/serving.h"
#include "async/isolation/exclusive_connections.h"
#include "modes/mode.h"
#include "modes/modes.h"
#include "modes/run.h"
#include "modes/script_loop.h"
#include "sapi/log.h"
#include "sapi/server_array.h"

#include <stdio.h>
#include <syslog.h>

/* The classes and functions of the namespace Howdah that are written in PHP. Compiled before the worker script, in the
 * same request of PHP. False: the build is broken, PHP has logged why. */
static bool compile_library(void) {
    const char *name, *text;
    size_t name_len, text_len;
    for (size_t i = 0; howdah_rs_library(i, &name, &name_len, &text, &text_len); i++) {
        char where[64];
        (snprintf)(where, sizeof where, "%.*s", (int)name_len, name);
        if (zend_eval_stringl(text, text_len, NULL, where) == FAILURE || EG(exception) != NULL) {
            shim_loop_report_exception();
            shim_log(LOG_CRIT, "%s does not compile", where);
            return false;
        }
    }
    return true;
}

static shim_outcome run(void) {
    coroutine_available = true;
    if (!shim_loop_open_script(shim.worker->script) || !compile_library()) {
        return SHIM_RETIRE;
    }
    shim_loop_execute_script(shim.worker->script);
    return SHIM_RETIRE;
}

static int work(void) {
    return shim_run_script(run, shim_loop_close_script);
}

/* A process that a script forked takes no requests; a script that was served once has had its turn. */
static bool serve(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    if (!shim.script_child && shim_loop_booting()) {
        shim_loop_boot_end();
        async_serve(function, cache);
        shim_loop_leave();
    }
    return false;
}

const shim_mode shim_mode_async = {
    .name = "async",
    /* The just-in-time compiler has not been proven with many stacks. */
    .ini = SHIM_LOOP_INI "opcache.jit=disable\n",
    .kept_server_arrays = SHIM_KEPT_SERVER_ARRAYS,
    .after_php = async_exclusive_install,
    .work = work,
    .serve = serve,
    .takes_output = async_output_to_main,
    .unsent_output = shim_loop_unsent_output,
    .client_gone = shim_loop_client_gone,
};
