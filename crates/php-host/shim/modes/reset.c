/* State that worker mode resets between two requests of one running script, one function per item, each with its
 * reason. The application's setup stays, as it does in FrankenPHP: globals, statics, constants, included files,
 * ini_set(), $_ENV and putenv(), locale, time zone, current directory, error and exception handlers, open files and
 * connections, functions for shutdown (they run when the script ends). Frameworks boot in their first request, so a
 * request may set up the application, too. docs/internals/request-state.md has the table. */
#include "modes/reset.h"

#include "shim.h"
#include "globals/extensions.h"
#include "globals/libraries.h"
#include "modes/mode.h"
#include "modes/opcache_switch.h"
#include "sapi/user_ini.h"

#include <ext/standard/basic_functions.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Calls a module's handler for the end or the start of a request, while the script's request continues. */
static void call_module(zend_module_entry *module, zend_result (*handler)(int type, int module_number)) {
    if (handler != NULL) {
        handler(module->type, module->module_number);
    }
}

/* connection_status() and error_get_last() describe a request: a disconnect or an error in one must not appear in the
 * next. The peak of memory is reported per request. */
void shim_reset_status(void) {
    PG(connection_status) = PHP_CONNECTION_NORMAL;
    PG(header_is_being_sent) = 0;
    PG(in_user_include) = 0;
    PG(in_error_log) = 0;
    EG(exit_status) = 0;
    if (PG(last_error_message) != NULL) {
        zend_string_release(PG(last_error_message));
        PG(last_error_message) = NULL;
        PG(last_error_type) = 0;
        PG(last_error_lineno) = 0;
    }
    if (PG(last_error_file) != NULL) {
        zend_string_release(PG(last_error_file));
        PG(last_error_file) = NULL;
    }
    zend_memory_reset_peak_usage();
    /* A seed that one request has chosen must not predict the numbers of the next one. */
    RANDOM_G(mt19937_seeded) = false;
    RANDOM_G(combined_lcg_seeded) = false;
}

/* Clears the stat cache: files change between requests. */
void shim_reset_file_status(void) {
    if (BG(CurrentStatFile) != NULL || BG(CurrentLStatFile) != NULL) {
        php_clear_stat_cache(0, NULL, 0);
    }
}

/* zlib checks only once per request whether the client accepts compressed output. */
static zend_module_entry *zlib(void) {
    static zend_module_entry *module;
    static bool looked;
    if (!looked) {
        looked = true;
        module = shim_extension("zlib");
    }
    return module;
}

/* Also starts zlib.output_compression; reads $_SERVER. */
void shim_reset_compression_open(void) {
    if (zlib() != NULL) {
        call_module(zlib(), zlib()->request_startup_func);
    }
}

void shim_reset_compression_close(void) {
    if (zlib() != NULL) {
        call_module(zlib(), zlib()->request_shutdown_func);
    }
}

/* Buffers left open hold output of another request, and PHP switches output off for the rest of a request after HEAD or
 * an abort. Closing them makes PHP send the headers, so this runs before the headers are reset. */
void shim_reset_output_close(void) {
    php_output_deactivate();
    php_output_activate();
}

/* Applies the ini settings for output, which PHP reads once per request. */
void shim_reset_output_open(void) {
    if (PG(output_handler) != NULL && *PG(output_handler) != '\0') {
        zval handler;
        ZVAL_STRING(&handler, PG(output_handler));
        php_output_start_user(&handler, 0, PHP_OUTPUT_HANDLER_STDFLAGS);
        zval_ptr_dtor(&handler);
    } else if (PG(output_buffering)) {
        size_t size = PG(output_buffering) > 1 ? (size_t)PG(output_buffering) : 0;
        php_output_start_user(NULL, size, PHP_OUTPUT_HANDLER_STDFLAGS);
    } else if (PG(implicit_flush)) {
        php_output_set_implicit_flush(1);
    }
}

/* $_GET, $_POST, $_COOKIE, $_FILES, $_SERVER and $_REQUEST describe the request. With auto_globals_jit, PHP makes
 * $_SERVER and $_REQUEST when code that names them is compiled. In a worker such code stays compiled, so from then on
 * they are made for each request, and not at all before. $_ENV belongs to the process and stays. */
void shim_reset_superglobals(void) {
    zval *files = &PG(http_globals)[TRACK_VARS_FILES];
    zval_ptr_dtor_nogc(files);
    ZVAL_UNDEF(files);
    zend_auto_global *global;
    ZEND_HASH_MAP_FOREACH_PTR(CG(auto_globals), global) {
        if (global->auto_global_callback == NULL || zend_string_equals_literal(global->name, "_ENV")) {
            continue;
        }
        if (!(global->jit && global->armed)) {
            global->armed = global->auto_global_callback(global->name);
        }
    }
    ZEND_HASH_FOREACH_END();
    if (PG(register_argc_argv)) {
        php_build_argv(SG(request_info).query_string, &PG(http_globals)[TRACK_VARS_SERVER]);
    }
}

/* True if there is any session state to clear. */
static bool session_touched(void) {
    return PS(session_status) == php_session_active || PS(id) != NULL || !Z_ISUNDEF(PS(http_session_vars)) ||
           PS(mod_data) != NULL || PS(mod_user_is_open);
}

/* A session belongs to a visitor. Unless the script itself ends the response earlier, the session is written and closed
 * before the client has the whole response, as the client's next request may follow at once; its id and $_SESSION are
 * cleared. Handlers of session_set_save_handler() belong to the application and stay, though PHP drops them at the end
 * of a request. */
void shim_reset_session_close(void) {
    if (!SHIM_HAS_SESSION() || !session_touched()) {
        return;
    }
    static zend_module_entry *module;
    if (module == NULL) {
        module = shim_extension("session");
    }
    zval *names = (zval *)&PS(mod_user_names);
    zval kept[sizeof PS(mod_user_names) / sizeof(zval)];
    size_t count = sizeof kept / sizeof *kept;
    for (size_t i = 0; i < count; i++) {
        ZVAL_COPY(&kept[i], &names[i]);
    }
    call_module(module, module->request_shutdown_func);
    memcpy(names, kept, sizeof kept);
    zend_hash_str_del(&EG(symbol_table), ZEND_STRL("_SESSION"));
    /* Prepares for the next request, and for code that runs before it; session.auto_start waits for that request's
     * cookies. */
    bool auto_start = PS(auto_start);
    PS(auto_start) = false;
    call_module(module, module->request_startup_func);
    PS(auto_start) = auto_start;
}

/* session.auto_start applies to every request. */
void shim_reset_session_open(void) {
    if (SHIM_HAS_SESSION() && PS(auto_start) && PS(session_status) == php_session_none) {
        php_session_start();
    }
}

/* After a fatal error for lack of memory, PHP has raised the limit to be able to report the error. */
void shim_reset_memory_limit(void) {
    zend_set_memory_limit((size_t)PG(memory_limit));
}

/* True if a script still holds an open php://input, which reads from the stream of the body. */
static bool input_is_open(void) {
    const zend_resource *resource;
    ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
        if (resource->type == php_file_le_stream() && resource->ptr != NULL) {
            const php_stream *stream = resource->ptr;
            if (strcmp(stream->ops->label, "Input") == 0) {
                return true;
            }
        }
    }
    ZEND_HASH_FOREACH_END();
    return false;
}

/* PHP closes the body's stream with all others at the end of its request. Without this, a worker would accumulate one
 * stream per POST. */
void shim_reset_input(void) {
    php_stream *body = SG(request_info).request_body;
    if (body != NULL && !input_is_open()) {
        SG(request_info).request_body = NULL;
        php_stream_free(body, PHP_STREAM_FREE_CLOSE);
    }
    /* The rest is not needed: PHP need not read it to the end. */
    SG(post_read) = 1;
}

/* ext/filter keeps the request's variables for filter_input(). */
void shim_reset_filter(void) {
    static zend_module_entry *module;
    static bool looked;
    if (!looked) {
        looked = true;
        module = shim_extension("filter");
    }
    if (module != NULL) {
        call_module(module, module->request_shutdown_func);
        call_module(module, module->request_startup_func);
    }
}

static mode_t boot_umask;
static zend_long boot_time_limit;
static char *boot_base_directories;

static const char *base_directories(void) {
    return PG(open_basedir) != NULL ? PG(open_basedir) : "";
}

void shim_reset_remember(void) {
    free(boot_base_directories);
    boot_base_directories = strdup(base_directories());
    globals_libraries_remember();
    globals_extensions_remember();
    boot_umask = umask(0);
    umask(boot_umask);
    BG(umask) = -1;
    boot_time_limit = EG(timeout_seconds);
    if (!shim.mode->directory_settings) {
        shim_opcache_stays_on();
    }
}

/* set_time_limit() applies to the rest of a request. It changes PHP's setting, so that is restored. */
static void reset_time_limit(void) {
    if (EG(timeout_seconds) == boot_time_limit) {
        return;
    }
    zend_string *name = zend_string_init(ZEND_STRL("max_execution_time"), 0);
    zend_string *value = zend_long_to_str(boot_time_limit);
    zend_alter_ini_entry_ex(name, value, PHP_INI_USER, PHP_INI_STAGE_RUNTIME, true);
    zend_string_release(value);
    zend_string_release(name);
}

/* Scripts can tighten open_basedir but not loosen it: a restriction by one request would apply to all later ones in
 * this process. PHP itself may loosen it at a request's end, so this does the same and then sets the value of the boot
 * again. */
static void reset_base_directories(void) {
    if (boot_base_directories == NULL || strcmp(base_directories(), boot_base_directories) == 0) {
        return;
    }
    zend_string *name = zend_string_init(ZEND_STRL("open_basedir"), 0);
    zend_restore_ini_entry(name, PHP_INI_STAGE_DEACTIVATE);
    if (strcmp(base_directories(), boot_base_directories) != 0) {
        zend_string *value = zend_string_init(boot_base_directories, strlen(boot_base_directories), 0);
        zend_alter_ini_entry_ex(name, value, PHP_INI_USER, PHP_INI_STAGE_RUNTIME, true);
        zend_string_release(value);
    }
    zend_string_release(name);
}

/* PHP saves the original mask when a script changes it. */
void shim_reset_umask(void) {
    if (BG(umask) != -1) {
        umask(boot_umask);
        BG(umask) = -1;
    }
}

void shim_reset_changed(void) {
    shim_request_settings_end();
    globals_libraries_reset();
    globals_extensions_reset();
    reset_time_limit();
    reset_base_directories();
}
