/* Snapshot mode: an application boots once, then every request runs on the state it had just booted into, and that
 * state comes back after each request. Two ways to boot:
 *
 *   a worker script     written for frankenphp_handle_request(); the snapshot is taken when it first asks for a call
 *   a boot file         for applications that are not; it is run once, and then each request runs its own script, as in
 *                       classic mode, in the same global scope
 *
 * Howdah\snapshot() takes it elsewhere: what follows the call then runs in every request. The flow is one function,
 * wait_for_call(), to which each restore returns; a request ends in finish_request(), which does not return. */
#include "snapshot_request.h"
#include "worker_loop.h"

#include <ext/standard/php_filestat.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

/* Rounds of warm-up calls on the finished snapshot. They fill OPcache and teach the engine which pages get written. */
#define WARM_ROUNDS 2

/* What outlives restores; in the engine's memory. */
typedef struct lasting {
    size_t warm_calls; /* done on the snapshot */
    bool offered;      /* the booted application, to other workers */
    bool ready;        /* the server was told */
} lasting;

static lasting *last;
/* When the boot began, microseconds since the epoch; as the calls' time of arrival. */
static uint64_t boot_began;
static bool by_boot_file;
/* The script's handler has run for the current call: its next question for a call ends this one. */
static bool handled;

static zval restore_callbacks; /* an array, or undefined */

static zif_handler original_signal_functions[8];

/* --- the snapshot and the calls on it --------------------------------------------------------------------------------
 */

/* Says why, and ends the worker: without its snapshot it must not serve. */
static void refuse(const char *why) {
    shim_log(LOG_CRIT, "snapshot: %s", why);
    zend_bailout();
}

/* PHP remembers for some minutes where files are. On a snapshot these minutes would begin at the same moment each time
 * and be over for all requests some time later; what the snapshot was made from stays as it is until it is made anew.
 */
static void keep_realpaths(void) {
    realpath_cache_bucket **buckets = realpath_cache_get_buckets();
    zend_long count = realpath_cache_max_buckets();
    for (zend_long i = 0; i < count; i++) {
        for (realpath_cache_bucket *entry = buckets[i]; entry != NULL; entry = entry->next) {
            entry->expires += 10L * 365 * 24 * 3600;
        }
    }
}

/* Brings PHP into the state that every request shall find. */
static void settle(void) {
    zend_unset_timeout();
    php_clear_stat_cache(0, NULL, 0);
    shim_snapshot_heap_collect();
    keep_realpaths();
    shim_snapshot_end_remember();
    shim_snapshot_heap_spare();
    shim_snapshot_random_forget();
}

/* Lets workers be forked from this process as it is now, so that the application boots once. Returns in this worker and
 * in each of those. */
static void offer_boot(void) {
    if (!howdah_rs_share_boot(snapshot_unshareable(), boot_began)) {
        return;
    }
    shim_snapshot_random_forked();
    snapshot_adopt();
}

/* The same once the warm-up calls have run on the snapshot and what they were answered has been looked at. */
static void share_when_warm(void) {
    if (!last->offered && last->warm_calls >= shim.boot->n_warmup * WARM_ROUNDS) {
        last->offered = true;
        shim_warmup_judge();
        offer_boot();
    }
}

static void take_snapshot(void) {
    if (EG(active_fiber) != NULL) {
        refuse("it was asked for in a fiber");
    }
    const char *encrypted = shim_snapshot_refused_stream();
    if (encrypted == NULL) {
        encrypted = shim_snapshot_refused_connection();
    }
    if (encrypted != NULL) {
        char why[400];
        (snprintf)(why, sizeof why, "%s is open; open it in each request instead", encrypted);
        refuse(why);
    }
    const char *trouble = shim_snapshot_settle_boot();
    if (trouble != NULL) {
        refuse(trouble);
    }
    settle();
    if (snapshot_take(share_when_warm) == SNAPSHOT_FAILED) {
        refuse(snapshot_reason());
    }
    /* Each restore comes here. */
    shim.calls_done = snapshot_stats()->restores;
}

/* An answer to an earlier request may have come late: it must not be taken for the answer to this one. The server runs
 * the call again where that is safe. */
static void check_connections(void) {
    if (snapshot_boot_sockets() > 0 && snapshot_restless_socket() >= 0) {
        /* Not through the lane: what is written there is lost with a call that is not answered. */
        fputs("snapshot: worker replaced: a connection opened at boot was closed or got a late answer\n", stderr);
        snapshot_exit();
    }
}

/* Takes the next call: one of the warm-up first, then the lane's. False when the worker shall end. */
static bool take_call(void) {
    if (last->warm_calls < shim.boot->n_warmup * WARM_ROUNDS && !shim_snapshot_warmup_refused()) {
        shim_warmup_make_current(last->warm_calls++);
        return true;
    }
    if (snapshot_stats()->way != SNAPSHOT_WAY_FORK) {
        share_when_warm();
    }
    if (!last->ready) {
        const snapshot_numbers *numbers = snapshot_stats();
        static const char *const ways[] = {"-", "page scans", "the page map", "a process per request"};
        shim_log(LOG_INFO, "snapshot taken: %zu KiB in use of %zu KiB, restored by %s", numbers->stored / 1024,
                 numbers->bytes / 1024, ways[numbers->way]);
        last->ready = true;
        howdah_rs_ready();
    }
    if (!shim_call_take()) {
        return false;
    }
    check_connections();
    return true;
}

static void call_restore_callbacks(void) {
    if (Z_TYPE(restore_callbacks) != IS_ARRAY) {
        return;
    }
    zval *callback;
    ZEND_HASH_FOREACH_VAL(Z_ARRVAL(restore_callbacks), callback) {
        zval result;
        ZVAL_UNDEF(&result);
        call_user_function(NULL, NULL, callback, &result, 0, NULL);
        zval_ptr_dtor(&result);
        if (EG(exception) != NULL) {
            return;
        }
    }
    ZEND_HASH_FOREACH_END();
}

static void finish_request(bool after_bailout) __attribute__((noreturn));

/* Takes the snapshot; from then on every request begins here. False when the worker shall end. */
static bool wait_for_call(void) {
    take_snapshot();
    if (!take_call()) {
        return false;
    }
    shim_loop_open();
    shim_snapshot_random_renew();
    if (!shim_warmup_running()) {
        shim_debugger_begin();
    }
    call_restore_callbacks();
    if (EG(exception) != NULL) {
        shim_loop_report_exception();
        finish_request(false);
    }
    return true;
}

static void report_numbers(bool fit) {
    const snapshot_numbers *numbers = snapshot_stats();
    howdah_rs_snapshot_numbers((snapshot_report){
        .way = numbers->way,
        .searches = (uint32_t)numbers->scans,
        .restored_pages = (uint32_t)(numbers->written / SNAPSHOT_PAGE),
        .restore_ns = numbers->last_ns < UINT32_MAX ? (uint32_t)numbers->last_ns : UINT32_MAX,
        .resets = shim_snapshot_resets(),
        .unfit = !fit,
    });
}

/* Ends the request and goes back to the snapshot. */
static void finish_request(bool after_bailout) {
    shim_warmup_session();
    shim_snapshot_end_request(after_bailout);
    const bool fit = shim_snapshot_settle(after_bailout);
    bool retire = !fit;
    if (shim_warmup_running()) {
        shim_warmup_answered();
        if (shim.script_child) {
            _exit(EG(exit_status));
        }
        if (!fit) {
            shim_snapshot_refuse_warmup(snapshot_reason());
        }
    } else {
        retire = shim_used_up() || !fit;
        report_numbers(fit);
        shim_call_finish(retire);
    }
    if (!retire) {
        snapshot_restore();
        shim_log(LOG_NOTICE, "snapshot: worker replaced: %s", snapshot_reason());
    }
    snapshot_exit();
}

/* --- PHP functions --------------------------------------------------------------------------------------------------
 */

/* Runs the script's handler and ends the answer, as a turn of worker mode does. The request goes on with the body of
 * the script's loop. */
static void run_handler(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    volatile bool bailed = true, answered = false;
    zend_try {
        if (shim_loop_run(function, cache) && !shim.script_child) {
            shim_warmup_session();
            shim_loop_answer();
            shim_warmup_answered();
            answered = true;
        }
        bailed = false;
    }
    zend_end_try();
    if (!answered) {
        finish_request(bailed);
    }
    handled = true;
}

bool shim_snapshot_turn(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    if (shim.script_child || by_boot_file) {
        return false;
    }
    if (!snapshot_taken()) {
        if (shim_loop_booting()) {
            shim_loop_boot_end();
            shim_warmup_ask_alone(function, cache);
        }
        if (shim_warmup_turn(function, cache) == SHIM_WARMUP_TURN) {
            return true;
        }
        if (!wait_for_call()) {
            shim_loop_leave();
            return false;
        }
    } else if (handled) {
        finish_request(false);
    }
    if (shim.call == NULL) {
        return false;
    }
    run_handler(function, cache);
    return true;
}

/* True when the rest of the script runs for a request; false where there is nothing to take a snapshot of. */
PHP_FUNCTION(Howdah_snapshot) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (shim.mode != &shim_mode_snapshot || snapshot_taken() || !shim_loop_booting()) {
        RETURN_FALSE;
    }
    shim_loop_boot_end();
    if (!wait_for_call()) {
        snapshot_exit();
    }
    RETURN_TRUE;
}

/* Elsewhere than in snapshot mode nothing is restored, and the function is not called. */
PHP_FUNCTION(Howdah_on_restore) {
    zend_fcall_info function;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(function, cache)
    ZEND_PARSE_PARAMETERS_END();
    if (shim.mode != &shim_mode_snapshot || snapshot_taken()) {
        return;
    }
    if (Z_TYPE(restore_callbacks) != IS_ARRAY) {
        array_init(&restore_callbacks);
    }
    Z_TRY_ADDREF(function.function_name);
    zend_hash_next_index_insert(Z_ARRVAL(restore_callbacks), &function.function_name);
}

/* Whether another worker can do the call in this one's place. One that arrived before the boot began is run here: it
 * could have come before what has changed since, and else it might wander for ever. */
static bool may_give_back(void) {
    return shim.mode == &shim_mode_snapshot && snapshot_taken() && shim.call != NULL && !shim_warmup_running() &&
           !shim.script_child && !SG(headers_sent) && shim.call->received_unix_us > boot_began;
}

/* Does not return if the call is given back. */
PHP_FUNCTION(Howdah_boot_again) {
    char *why = "";
    size_t length = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_STRING(why, length)
    ZEND_PARSE_PARAMETERS_END();
    if (!may_give_back()) {
        RETURN_FALSE;
    }
    shim_log(LOG_NOTICE, "snapshot: worker replaced: the boot is outdated%s%.*s", length != 0 ? ": " : "",
             (int)(length < 400 ? length : 400), why);
    if (!howdah_rs_give_back(boot_began)) {
        RETURN_FALSE;
    }
    /* Nothing of PHP runs any more, as if the request had not begun here; but its temporary files must go. */
    shim_snapshot_end_outside();
    snapshot_exit();
}

/* Functions that change what only many system calls could put back; they tell, so that requests without them are fast.
 */
static const char *const signal_functions[] = {"pcntl_signal", "pcntl_sigprocmask", "pcntl_alarm", "pcntl_sigwaitinfo",
                                               "pcntl_async_signals"};
/* Functions after which the process cannot be what it was. */
static const char *const fatal_functions[] = {
    "proc_nice",     "posix_setuid",    "posix_setgid",     "posix_seteuid",     "posix_setegid", "posix_setsid",
    "posix_setpgid", "posix_setrlimit", "posix_initgroups", "pcntl_setpriority", "pcntl_unshare"};
static zif_handler original_fatal_functions[sizeof fatal_functions / sizeof *fatal_functions];

static const zend_string *called_function(const zend_execute_data *execute_data) {
    return execute_data->func->common.function_name;
}

static ZEND_NAMED_FUNCTION(watched_signal_function) {
    snapshot_signals_touched();
    for (size_t i = 0; i < sizeof signal_functions / sizeof *signal_functions; i++) {
        if (strcmp(ZSTR_VAL(called_function(execute_data)), signal_functions[i]) == 0) {
            original_signal_functions[i](INTERNAL_FUNCTION_PARAM_PASSTHRU);
            return;
        }
    }
}

static ZEND_NAMED_FUNCTION(watched_fatal_function) {
    if (snapshot_taken()) {
        snapshot_spoil("the script has changed what a process cannot take back (user, group, session or limits)");
    }
    for (size_t i = 0; i < sizeof fatal_functions / sizeof *fatal_functions; i++) {
        if (strcmp(ZSTR_VAL(called_function(execute_data)), fatal_functions[i]) == 0) {
            original_fatal_functions[i](INTERNAL_FUNCTION_PARAM_PASSTHRU);
            return;
        }
    }
}

static void watch_functions(void) {
    for (size_t i = 0; i < sizeof signal_functions / sizeof *signal_functions; i++) {
        const char *name = signal_functions[i];
        original_signal_functions[i] = shim_watch_function(name, strlen(name), watched_signal_function);
    }
    for (size_t i = 0; i < sizeof fatal_functions / sizeof *fatal_functions; i++) {
        const char *name = fatal_functions[i];
        original_fatal_functions[i] = shim_watch_function(name, strlen(name), watched_fatal_function);
    }
}

/* --- the mode -------------------------------------------------------------------------------------------------------
 */

/* Runs the boot file in the global scope. False when it ended otherwise than by reaching its end. */
static bool run_boot_file(const char *path) {
    zend_file_handle file;
    zend_stream_init_filename(&file, path);
    file.primary_script = true;
    zval result;
    ZVAL_UNDEF(&result);
    PG(during_request_startup) = 0;
    zend_result status = zend_execute_scripts(ZEND_REQUIRE, &result, 1, &file);
    bool returned = status == SUCCESS && !Z_ISUNDEF(result);
    zval_ptr_dtor(&result);
    return returned;
}

/* Runs the call's own script, as classic mode does. */
static void run_call_script(void) {
    zend_file_handle file;
    unsigned status = shim_script_prepare(&file);
    if (status != 0) {
        shim_answer_instead(status);
        return;
    }
    php_execute_script(&file);
}

static shim_outcome run_by_boot_file(void) {
    if (!shim_loop_open_script(shim.worker->boot_script)) {
        return SHIM_RETIRE;
    }
    bool returned = run_boot_file(shim.worker->boot_script);
    if (!snapshot_taken()) {
        if (!returned) {
            shim_log(LOG_CRIT, "snapshot: the boot file %s did not reach its end", shim.worker->boot_script);
            return SHIM_RETIRE;
        }
        shim_loop_boot_end();
        if (!wait_for_call()) {
            return SHIM_RETIRE;
        }
    } else if (!returned) {
        /* exit() in what follows Howdah\snapshot(). */
        finish_request(false);
    }
    run_call_script();
    finish_request(false);
}

static shim_outcome run(void) {
    shim_warmup_prepare();
    if (!snapshot_prepare() || (last = snapshot_lasting_memory(sizeof *last)) == NULL) {
        shim_log(LOG_CRIT, "snapshot: %s", snapshot_reason());
        return SHIM_RETIRE;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    boot_began = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    by_boot_file = *shim.worker->boot_script != '\0';
    if (!by_boot_file && *shim.worker->script == '\0') {
        shim_log(LOG_CRIT, "snapshot mode needs a worker script (--script) or a boot file (--boot)");
        return SHIM_RETIRE;
    }
    shim_snapshot_random_watch();
    shim_snapshot_tls_watch();
    shim_snapshot_settle_watch();
    watch_functions();
    if (by_boot_file) {
        shim_warmup_process();
    }
    shim_snapshot_heap_install();
    if (by_boot_file) {
        return run_by_boot_file();
    }
    shim_loop_run_script(shim.worker->script);
    if (shim.call != NULL && snapshot_taken()) {
        /* The loop has ended by its own decision, or the script took the snapshot itself and never asked for a call:
         * the call was the rest of it. */
        finish_request(CG(unclean_shutdown));
    }
    return SHIM_RETIRE;
}

/* The script is over, by a bailout or because there are no more calls. */
static shim_outcome after(void) {
    if (snapshot_taken() && shim.call != NULL) {
        finish_request(true);
    }
    if (!snapshot_taken()) {
        shim_warmup_script_ended();
    }
    shim_loop_close_script();
    if (snapshot_taken()) {
        /* Not on to the end of PHP's modules: the heap's storage is gone with the request. */
        snapshot_exit();
    }
    return SHIM_RETIRE;
}

const shim_mode shim_mode_snapshot = {
    .name = "snapshot",
    .resident = true,
    .restores = true,
    .run = run,
    .after = after,
};
