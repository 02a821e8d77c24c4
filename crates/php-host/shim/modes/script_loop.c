/* The loop of requests inside one running script, see script_loop.h. This file does around each request what PHP does
 * at the start and the end of a request, without ending the script's own request; reset.c resets the state.
 *
 * The client has its whole response when the callback has returned. The request's data stays until the script asks for
 * the next request, so that code after the loop call (Symfony's terminate()) finds it, as after
 * fastcgi_finish_request(). */
#include "modes/script_loop.h"

#include "shim.h"
#include "modes/opcache_clock.h"
#include "modes/request_start.h"
#include "modes/reset.h"
#include "process/wear.h"
#include "sapi/current_request.h"
#include "sapi/debugger.h"
#include "sapi/embedded.h"
#include "sapi/error_page.h"
#include "sapi/input.h"
#include "sapi/log.h"
#include "sapi/server_array.h"
#include "sapi/server_array_reuse.h"

#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

typedef enum loop_phase {
    LOOP_CLOSED,  /* no script runs */
    LOOP_BOOTING, /* the script has not asked for a request */
    LOOP_BETWEEN, /* the script's own code, before or after a request's callback */
    LOOP_RUNNING, /* the callback */
    LOOP_LEFT,    /* there are no more requests */
} loop_phase;

static loop_phase phase = LOOP_CLOSED;
static bool was_ready;
/* The script's path, for messages and $_SERVER. */
static const char *script_path;
/* PHP's value of max_input_time, see sapi/whole_request.c. */
static zend_long max_input_time;

bool shim_loop_booting(void) {
    return phase == LOOP_BOOTING;
}

bool shim_loop_may_serve(void) {
    return phase == LOOP_BOOTING || phase == LOOP_BETWEEN || phase == LOOP_LEFT;
}

int shim_loop_exit_status(void) {
    return was_ready ? EG(exit_status) & 0xff : HOWDAH_BOOT_FAILED;
}

void shim_loop_unsent_output(const char *text, size_t length) {
    if (shim.request != NULL) {
        return;
    }
    /* Output outside of a request has no client: each line becomes a log line. */
    while (length > 0) {
        const char *newline = memchr(text, '\n', length);
        size_t line = newline != NULL ? (size_t)(newline - text) : length;
        size_t shown = line > 0 && text[line - 1] == '\r' ? line - 1 : line;
        if (shown > 0) {
            shim_log_line(LOG_INFO, text, shown);
        }
        line += newline != NULL;
        text += line;
        length -= line;
    }
}

void shim_loop_boot_variables(zval *array) {
    if (phase != LOOP_BOOTING) {
        return;
    }
    char copy[PATH_MAX];
    const char *name = strrchr(script_path, '/');
    php_register_variable("SCRIPT_FILENAME", script_path, array);
    php_register_variable("SCRIPT_NAME", name != NULL ? name : script_path, array);
    php_register_variable("PHP_SELF", name != NULL ? name : script_path, array);
    if (strlen(script_path) < sizeof copy) {
        php_register_variable("DOCUMENT_ROOT", dirname(strcpy(copy, script_path)), array);
    }
    php_register_variable("SERVER_SOFTWARE", shim.worker->software, array);
    if (*shim.worker->boot_host != '\0') {
        php_register_variable("HTTP_HOST", shim.worker->boot_host, array);
        php_register_variable("SERVER_NAME", shim.worker->boot_host, array);
    }
    /* Scripts written for FrankenPHP check this variable to see that they may loop. */
    php_register_variable("FRANKENPHP_WORKER", "1", array);
}

static void (*original_error)(int type, zend_string *file, const uint32_t line, zend_string *message);

/* Output during the boot goes to the log, as do errors with log_errors. Without this, errors would be logged twice. */
static void report_boot_error(int type, zend_string *file, const uint32_t line, zend_string *message) {
    const bool logged = phase == LOOP_BOOTING && PG(log_errors) && PG(error_log) == NULL;
    const zend_uchar displays = PG(display_errors);
    if (logged) {
        PG(display_errors) = 0;
    }
    /* Does not return from a fatal error: the script is over then. */
    original_error(type, file, line, message);
    if (logged) {
        PG(display_errors) = displays;
    }
}

/* Prepares PHP's request around the script while there is no request of the server: its headers are dropped, its output
 * goes to the log. */
static void begin_idle_request(void) {
    SG(request_info).no_headers = 1;
}

bool shim_loop_open_script(const char *path) {
    struct stat status;
    shim_log_forget_errors();
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || access(path, R_OK) != 0) {
        shim_log(LOG_CRIT, "cannot read the script %s", path);
        return false;
    }
    script_path = path;
    phase = LOOP_BOOTING;
    max_input_time = PG(max_input_time);
    PG(max_input_time) = -1;
    SG(request_info).path_translated = (char *)path;
    shim_opcache_clock_probe();
    if (php_request_startup() == FAILURE) {
        phase = LOOP_CLOSED;
        shim_log(LOG_CRIT, "PHP could not start a request; the worker ends");
        return false;
    }
    shim_opcache_clock_found();
    shim_server_array_prepare();
    SHIM_SIGNALS_KEEP_HANDLERS();
    shim_error_page_begin();
    begin_idle_request();
    char copy[PATH_MAX];
    if (strlen(path) < sizeof copy && chdir(dirname(strcpy(copy, path))) != 0) {
        shim_log(LOG_WARNING, "cannot enter the directory of %s; running it elsewhere", path);
    }
    EG(exit_status) = 0;
    if (original_error == NULL) {
        original_error = zend_error_cb;
        zend_error_cb = report_boot_error;
    }
    return true;
}

/* Runs the pool's recipe before the script. False: it replaces the script, or failed. */
static bool run_recipe(void) {
    const char *path, *text;
    size_t length;
    uint64_t changed;
    if (*shim.worker->recipe == '\0') {
        return true;
    }
    if (!howdah_rs_recipe(shim.worker->recipe, &path, &text, &length, &changed)) {
        shim_log(LOG_CRIT, "this howdah-php has no recipe %s", shim.worker->recipe);
        return false;
    }
    return shim_embedded_run(path, text, length, changed);
}

void shim_loop_execute_script(const char *path) {
    if (!run_recipe()) {
        return;
    }
    zend_file_handle file;
    zend_string *name = zend_string_init(path, strlen(path), 0);
    zend_stream_init_filename_ex(&file, name);
    zend_string_release(name);
    file.primary_script = true;
    php_execute_script(&file);
    if (!file.in_list) {
        zend_destroy_file_handle(&file);
    }
}

shim_outcome shim_loop_run_script(const char *path) {
    if (shim_loop_open_script(path)) {
        shim_loop_execute_script(path);
    }
    return SHIM_RETIRE;
}

shim_outcome shim_loop_close_script(void) {
    if (phase == LOOP_CLOSED) {
        return SHIM_RETIRE;
    }
    /* The error in the log explains the end better. */
    if (!was_ready && !shim_log_has_error()) {
        const char *what =
            *shim.worker->boot_script != '\0' ? "was ready for requests" : "called frankenphp_handle_request()";
        shim_log(LOG_CRIT, "the script %s ended before it %s", script_path, what);
    }
    /* Its shutdown functions may print. Their output belongs to the last request if that has not been answered. */
    phase = LOOP_LEFT;
    PG(max_input_time) = max_input_time;
    shim_kept_forget();
    shim_error_page_end_script();
    php_request_shutdown(NULL);
    shim_input_release();
    phase = LOOP_CLOSED;
    return SHIM_RETIRE;
}

void shim_loop_boot_end(void) {
    php_output_end_all();
    shim_reset_session_close();
    shim_reset_filter();
    shim_reset_output_close();
    shim_reset_compression_close();
    SG(post_read) = 1;
    sapi_deactivate();
    shim_reset_remember();
    phase = LOOP_BETWEEN;
    was_ready = true;
}

void shim_loop_limit_time(void) {
    /* The current value of max_execution_time, so set_time_limit() before the loop applies to all requests. */
    if (EG(timeout_seconds) != 0) {
        zend_set_timeout(EG(timeout_seconds), 0);
    }
}

bool shim_loop_begin(void) {
    /* A waiting worker uses no processor time, so the timer of the last request, which counts processor time, need not
     * be stopped: it is set again below. The server enforces the wall-clock limit. */
    if (!shim_request_take()) {
        return false;
    }
    shim_request_start();
    shim_loop_limit_time();
    shim_debugger_begin();
    return true;
}

/* True if exit() is unwinding the script. */
static bool is_exiting(void) {
    return EG(exception) != NULL && (zend_is_unwind_exit(EG(exception)) || zend_is_graceful_exit(EG(exception)));
}

/* An exception that the callback did not catch ends the request and not the script: the application's handler gets it,
 * as it would at the end of a script; otherwise PHP's message is printed. */
void shim_loop_report_exception(void) {
    if (EG(exception) == NULL || is_exiting()) {
        return;
    }
    if (Z_TYPE(EG(user_exception_handler)) != IS_UNDEF) {
        zend_user_exception_handler();
    }
    if (EG(exception) != NULL) {
        zend_exception_error(EG(exception), E_ERROR);
    }
}

bool shim_loop_run(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    zval result;
    ZVAL_UNDEF(&result);
    function->retval = &result;
    function->param_count = 0;
    phase = LOOP_RUNNING;
    zend_call_function(function, cache);
    zval_ptr_dtor(&result);
    if (is_exiting()) {
        return false;
    }
    shim_loop_report_exception();
    phase = LOOP_BETWEEN;
    return !is_exiting();
}

void shim_loop_end_response(void) {
    shim_error_page_send();
    php_output_end_all();
    shim_loop_report_exception();
    shim_reset_session_close();
    shim_loop_report_exception();
    php_header();
    shim_reset_memory_limit();
    shim_response_end(false);
}

void shim_loop_put_away(void) {
    shim_reset_filter();
    shim_reset_session_close();
    shim_reset_output_close();
    shim_reset_compression_close();
    shim_reset_input();
    shim_reset_umask();
    sapi_deactivate();
}

bool shim_loop_release(void) {
    shim_loop_put_away();
    shim_reset_changed();
    bool retire = shim_used_up();
    shim_request_finish(retire);
    return !retire;
}

void shim_loop_leave(void) {
    phase = LOOP_LEFT;
    shim_input_release();
    sapi_activate();
    begin_idle_request();
}

void shim_loop_hand_over(void) {
    phase = LOOP_RUNNING;
}

void shim_loop_client_gone(void) {
    PG(connection_status) = PHP_CONNECTION_ABORTED;
    php_output_set_status(PHP_OUTPUT_DISABLED);
}

bool shim_loop_turn(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    /* A process that the script forked takes no requests. */
    if (phase == LOOP_LEFT || shim.script_child) {
        return false;
    }
    bool more = true;
    if (phase == LOOP_BOOTING) {
        shim_loop_boot_end();
        howdah_rs_ready();
    } else if (shim.request != NULL) {
        more = shim_loop_release();
    }
    if (!more || !shim_loop_begin()) {
        shim_loop_leave();
        return false;
    }
    if (!shim_loop_run(function, cache) || shim.script_child) {
        return false;
    }
    shim_loop_end_response();
    return true;
}
