/* Snapshot mode: an application boots once, then every request runs on the booted state, which is restored after each
 * request. There are two ways to boot:
 *
 *   a worker script     written for frankenphp_handle_request(); the snapshot is taken when it first asks for a request
 *   a boot file         for other applications; it runs once, and then each request runs its own script, as in
 *                       classic mode, in the same global scope; a recipe may be a boot file, too
 *
 * Howdah\snapshot() takes it elsewhere: the code after the call then runs in every request. The flow: take_snapshot(),
 * to which each restore returns, is the first step of shim_snapshot_take_and_begin_request(); a request ends in
 * finish_request(), which restores and does not return. */
#include "modes/snapshot.h"

#include "shim.h"
#include "modes/mode.h"
#include "modes/modes.h"
#include "modes/request_start.h"
#include "modes/run.h"
#include "modes/script_loop.h"
#include "process/timer_signal.h"
#include "process/wear.h"
#include "sapi/current_request.h"
#include "sapi/debugger.h"
#include "sapi/log.h"
#include "sapi/opcache_room.h"
#include "sapi/script.h"
#include "sapi/user_ini.h"
#include "sapi/whole_request.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/heap.h"
#include "snapshot/php/pool_notes.h"
#include "snapshot/php/random.h"
#include "snapshot/php/request_end.h"
#include "snapshot/php/tls.h"
#include "snapshot/php/warmup.h"
#include "snapshot/php/watch.h"
#include "snapshot/sessions/own_connections.h"
#include "snapshot/sessions/settle.h"

#include <ext/standard/php_filestat.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

/* Rounds of warm-up requests on the finished snapshot. They fill OPcache and show the engine which pages get
 * written. */
#define WARM_ROUNDS 2

/* State that survives restores; in the engine's memory. */
typedef struct lasting {
    size_t warm_requests;                           /* finished on the snapshot */
    bool offered;                                   /* the booted application was offered for forking other workers */
    bool ready;                                     /* the server was notified */
    enum { CONNECTED, OPENS, SETS_UP } connections; /* of a forked worker, before its first request */
} lasting;

static lasting *last;
static uint64_t boot_began;
static bool by_boot_file;
/* True once the script's handler has run for the current request: the script's next call for a request ends this
 * one. */
static bool handled;

/* --- the snapshot and the requests on it --- */

/* Logs the reason and ends the worker: without its snapshot it must not serve. */
static void refuse(const char *why) {
    shim_log(LOG_CRIT, "snapshot: %s", why);
    zend_bailout();
}

/* PHP caches real paths for some minutes. On a snapshot, each restore would bring back the same expiry times, and they
 * would expire for all requests some minutes later. The files that the snapshot was made from are treated as unchanged
 * until it is made again, so the entries never expire. */
static void keep_realpaths(void) {
    realpath_cache_bucket **buckets = realpath_cache_get_buckets();
    zend_long count = realpath_cache_max_buckets();
    for (zend_long i = 0; i < count; i++) {
        for (realpath_cache_bucket *entry = buckets[i]; entry != NULL; entry = entry->next) {
            entry->expires += 10L * 365 * 24 * 3600;
        }
    }
}

/* Brings PHP into the state that every request starts with. */
static void reset_to_request_start(void) {
    zend_unset_timeout();
    php_clear_stat_cache(0, NULL, 0);
    shim_snapshot_heap_collect();
    keep_realpaths();
    shim_snapshot_end_remember();
    shim_snapshot_heap_spare();
    shim_snapshot_random_forget();
}

/* Sends the zygote the snapshot's file, which contains many of the zygote's pages. */
static void offer_file(void) {
    const snapshot_range *ranges;
    size_t n;
    int file = snapshot_file(&ranges, &n);
    if (file < 0 || !howdah_rs_boots_for_others()) {
        return;
    }
    howdah_stored_area *areas = safe_emalloc(n, sizeof *areas, 0);
    for (size_t i = 0; i < n; i++) {
        areas[i] = (howdah_stored_area){
            .start = (uint64_t)ranges[i].start, .end = (uint64_t)ranges[i].end, .offset = ranges[i].offset};
    }
    howdah_rs_offer_file(file, areas, n);
    efree(areas);
}

/* Lets the zygote fork workers from this process in its current state, so that the application boots only once. Returns
 * in this worker and in each of those. */
static void become_template(void) {
    const bool connects = shim_own_connections_offer();
    const char *why_not = snapshot_unshareable();
    if (why_not == NULL) {
        offer_file();
    }
    if (!howdah_rs_share_boot(why_not, boot_began)) {
        return;
    }
    shim_snapshot_random_forked();
    last->connections = connects ? OPENS : CONNECTED;
    snapshot_adopt();
    /* This memory is zeroed if each request runs in its own process. The template is warm, and is not offered again. */
    last->offered = true;
    last->warm_requests = shim.boot->n_warmup * WARM_ROUNDS;
}

/* Like become_template(), once the warm-up requests have run on the snapshot and their responses have been checked. */
static void become_template_when_warm(void) {
    if (!last->offered && last->warm_requests >= shim.boot->n_warmup * WARM_ROUNDS) {
        last->offered = true;
        shim_warmup_judge();
        snapshot_release_files();
        become_template();
    }
}

/* PHP keeps a script open until its end, and a restore checks each open file. Compiled code is not read again, so the
 * file is closed. */
static void close_script(void *handle) {
    zend_file_handle *file = handle;
    if (file->type == ZEND_HANDLE_FP && file->handle.fp != NULL) {
        fclose(file->handle.fp);
    } else if (file->type == ZEND_HANDLE_STREAM && file->handle.stream.closer != NULL) {
        file->handle.stream.closer(file->handle.stream.handle);
    }
    file->type = ZEND_HANDLE_FILENAME;
}

/* Returns again after each restore. */
static void take_snapshot(void) {
    if (EG(active_fiber) != NULL) {
        refuse("it was requested in a fiber");
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
    shim_opcache_room_check();
    zend_llist_apply(&CG(open_files), close_script);
    shim_user_ini_remember_absent(snapshot_lasting_memory(SHIM_ABSENT_FILES));
    reset_to_request_start();
    if (snapshot_take(become_template_when_warm) == SNAPSHOT_FAILED) {
        refuse(snapshot_reason());
    }
    /* Each restore returns here. */
    shim.requests_done = snapshot_stats()->restores;
}

/* A late answer to an earlier request may have arrived on a connection: it must not be taken for the answer to this
 * request. The server runs the request again where that is safe. */
static void check_connections(void) {
    if (snapshot_boot_sockets() > 0 && snapshot_restless_socket() >= 0) {
        /* Not through the lane: its content is lost with a request that is not answered. */
        fputs("snapshot: worker replaced: a connection opened at boot was closed or got a late answer\n", stderr);
        snapshot_exit();
    }
}

/* A forked worker opens its own connections in two steps, each of which ends in a restore: a function of the
 * application opens them, and then the driver's state is that of the boot while the sessions are set up. */
static void connect_forked_worker(void) {
    const char *trouble = NULL;
    switch (last->connections) {
    case CONNECTED:
        return;
    case OPENS:
        last->connections = SETS_UP;
        shim_snapshot_random_renew();
        trouble = shim_own_connections_open();
        break;
    case SETS_UP:
        last->connections = CONNECTED;
        trouble = shim_own_connections_set_up();
        if (trouble != NULL) {
            shim_snapshot_outdate_boot(boot_began);
        }
        break;
    }
    if (trouble == NULL) {
        snapshot_restore();
        trouble = snapshot_reason();
    }
    shim_log(LOG_CRIT, "snapshot: %s", trouble);
    snapshot_exit();
}

/* Takes the next request: first those of the warm-up, then the lane's. False when the worker must end. */
static bool take_request(void) {
    connect_forked_worker();
    if (last->warm_requests < shim.boot->n_warmup * WARM_ROUNDS && !shim_snapshot_warmup_refused()) {
        shim_warmup_make_current(last->warm_requests++);
        return true;
    }
    if (snapshot_stats()->way != SNAPSHOT_WAY_FORK) {
        become_template_when_warm();
    }
    if (!last->ready) {
        const snapshot_numbers *numbers = snapshot_stats();
        static const char *const ways[] = {"-", "page scans", "the page map", "a process per request"};
        shim_log(LOG_INFO, "snapshot taken: %zu KiB in use of %zu KiB, restored by %s", numbers->stored / 1024,
                 numbers->bytes / 1024, ways[numbers->way]);
        last->ready = true;
        howdah_rs_ready();
    }
    if (!shim_request_take()) {
        return false;
    }
    check_connections();
    return true;
}

uint64_t shim_snapshot_boot_began(void) {
    return boot_began;
}

static void finish_request(bool after_bailout) __attribute__((noreturn));

bool shim_snapshot_take_and_begin_request(void) {
    /* Returns once for the snapshot, and again for each request after it. */
    take_snapshot();
    if (!take_request()) {
        return false;
    }
    shim_request_start();
    shim_loop_limit_time();
    shim_snapshot_random_renew();
    if (!shim_warmup_running()) {
        shim_debugger_begin();
    }
    const char *outdated = shim_snapshot_settle_outdated();
    if (outdated != NULL) {
        shim_snapshot_boot_again(outdated, strlen(outdated));
    }
    shim_snapshot_call_restore_callbacks();
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

/* Ends the request, then restores the snapshot or ends the worker. */
static void finish_request(bool after_bailout) {
    shim_warmup_session();
    shim_snapshot_end_request(after_bailout);
    const bool fit = shim_snapshot_settle(after_bailout);
    bool retire = !fit;
    if (shim_warmup_running()) {
        shim_warmup_responded();
        if (shim.script_child) {
            _exit(EG(exit_status));
        }
        if (!fit) {
            shim_snapshot_refuse_warmup(snapshot_reason());
        }
    } else {
        retire = shim_used_up() || !fit;
        report_numbers(fit);
        shim_request_finish(retire);
    }
    if (!retire) {
        snapshot_restore();
        shim_log(LOG_NOTICE, "snapshot: worker replaced: %s", snapshot_reason());
    }
    snapshot_exit();
}

/* --- a worker script's loop --- */

/* Runs the script's handler and ends the response, as worker mode does. The request continues with the body of the
 * script's loop. */
static void run_handler(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    volatile bool bailed = true, responded = false;
    zend_try {
        if (shim_loop_run(function, cache) && !shim.script_child) {
            shim_warmup_session();
            shim_loop_end_response();
            shim_warmup_responded();
            responded = true;
        }
        bailed = false;
    }
    zend_end_try();
    if (!responded) {
        finish_request(bailed);
    }
    handled = true;
    shim_snapshot_watch_responded();
}

static bool serve(zend_fcall_info *function, zend_fcall_info_cache *cache) {
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
        if (!shim_snapshot_take_and_begin_request()) {
            shim_loop_leave();
            return false;
        }
    } else if (handled) {
        finish_request(false);
    }
    if (shim.request == NULL) {
        return false;
    }
    run_handler(function, cache);
    return true;
}

/* --- the mode --- */

/* Runs the boot file in the global scope. False if it did not reach its end. */
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

/* Runs the request's own script, as classic mode does. */
static void run_request_script(void) {
    zend_file_handle file;
    /* It changes to the script's directory. */
    snapshot_touched(SNAPSHOT_DIRECTORY);
    unsigned status = shim_script_prepare(&file);
    if (status != 0) {
        shim_respond_instead(status);
        return;
    }
    shim_script_execute(&file);
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
        if (!shim_snapshot_take_and_begin_request()) {
            return SHIM_RETIRE;
        }
    } else if (!returned) {
        /* exit() in the code after Howdah\snapshot(). */
        finish_request(false);
    }
    run_request_script();
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
    shim_timer_signal_keep_in(snapshot_engine_memory(SHIM_TIMER_STATE_SIZE));
    shim_snapshot_random_watch();
    shim_snapshot_tls_watch();
    shim_snapshot_settle_watch();
    if (by_boot_file || howdah_rs_recipe_runs_script(shim.worker->recipe)) {
        shim_warmup_process();
    }
    shim_snapshot_heap_install();
    shim_debugger_prepare(SHIM_DEBUG_REQUESTS);
    if (by_boot_file) {
        return run_by_boot_file();
    }
    shim_loop_run_script(shim.worker->script);
    if (shim.request != NULL && snapshot_taken()) {
        /* The script has ended its loop, or it took the snapshot itself and never asked for a request: the rest of the
         * script was the request. */
        finish_request(CG(unclean_shutdown));
    }
    return SHIM_RETIRE;
}

/* The script has ended, by a bailout or because there are no more requests. */
static shim_outcome after(void) {
    if (snapshot_taken() && shim.request != NULL) {
        finish_request(true);
    }
    if (!snapshot_taken()) {
        shim_warmup_script_ended();
    }
    shim_loop_close_script();
    if (snapshot_taken()) {
        /* Skips the shutdown of PHP's modules: the heap's storage is gone with the request. */
        snapshot_exit();
    }
    return SHIM_RETIRE;
}

static int work(void) {
    return shim_run_script(run, after);
}

static void unsent_output(const char *data, size_t length) {
    if (shim.request == NULL) {
        shim_loop_unsent_output(data, length);
    } else {
        shim_warmup_output(data, length);
    }
}

/* Changes made by the boot and its warm-up belong to the application. */
static void process_changed(const char *what) {
    static char why[100];
    if (snapshot_taken()) {
        (snprintf)(why, sizeof why, "the script has changed %s, which stays with its process", what);
        snapshot_spoil(why);
    }
}

const shim_mode shim_mode_snapshot = {
    .name = "snapshot",
    .ini = SHIM_LOOP_INI,
    /* The restore undoes them. */
    .directory_settings = true,
    .kept_server_arrays = 1,
    .restores_signals = true,
    .before_php = shim_snapshot_notes_startup,
    .work = work,
    .serve = serve,
    .boot_variables = shim_loop_boot_variables,
    .unsent_output = unsent_output,
    .unsent_head = shim_warmup_head,
    .process_changed = process_changed,
    .client_gone = php_handle_aborted_connection,
};
