/* Starts and ends PHP in a process: our sapi_module, ini settings, PHP's modules with OPcache and preloading. The
 * module has FPM's name: OPcache starts only for names on its list, and applications check PHP_SAPI for it. */
#include "sapi/startup.h"

#include "shim.h"
#include "modes/mode.h"
#include "process/changes.h"
#include "process/random_source.h"
#include "sapi/current_request.h"
#include "sapi/error_page.h"
#include "sapi/functions.h"
#include "sapi/input.h"
#include "sapi/log.h"
#include "sapi/opcache_room.h"
#include "sapi/output.h"
#include "sapi/script.h"
#include "sapi/server_array.h"
#include "sapi/user_ini.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

static bool started;
static char *ini_text;
static char *ini_path;

static int module_startup(sapi_module_struct *module) {
    return php_module_startup(module, &shim_module);
}

static int deactivate(void) {
    if (shim.request != NULL) {
        /* The last moment at which PHP still knows the peak, and the first at which the response is complete. */
        shim.peak_memory = zend_memory_peak_usage(true);
        shim_response_end(true);
    }
    return SUCCESS;
}

sapi_module_struct shim_sapi_module = {
    .name = "fpm-fcgi",
    .pretty_name = "Howdah",
    .startup = module_startup,
    .shutdown = php_module_shutdown_wrapper,
    .activate = shim_sapi_activate,
    .deactivate = deactivate,
    .ub_write = shim_sapi_write,
    .flush = shim_sapi_flush,
    .getenv = shim_sapi_getenv,
    .sapi_error = zend_error,
    .send_headers = shim_sapi_send_headers,
    .read_post = shim_sapi_read_post,
    .read_cookies = shim_sapi_read_cookies,
    .register_server_variables = shim_sapi_register_variables,
    .log_message = shim_sapi_log,
    .get_request_time = shim_sapi_request_time,
    .php_ini_ignore_cwd = 1,
};

/* Returns the mode's settings and the operator's as one text, or NULL without memory. */
static char *ini_text_of_all(void) {
    char *text = malloc(strlen(shim.mode->ini) + strlen(shim.worker->ini_text) + 1);
    if (text != NULL) {
        stpcpy(stpcpy(text, shim.mode->ini), shim.worker->ini_text);
    }
    return text;
}

/* Prevents scripts and .user.ini files from changing these settings. */
static void lock_settings(const char *names) {
    for (const char *name = names; *name != '\0'; name += strspn(name, "\n")) {
        size_t length = strcspn(name, "\n");
        zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), name, length);
        if (entry != NULL) {
            entry->modifiable = ZEND_INI_SYSTEM;
        } else if (strncmp(name, "extension\n", 10) != 0 && strncmp(name, "zend_extension\n", 15) != 0) {
            shim_log(LOG_WARNING, "admin_ini: PHP has no setting \"%.*s\"", (int)length, name);
        }
        name += length;
    }
}

static void (*original_on_timeout)(int seconds);

/* Called by PHP's signal handler when a script has exceeded its time limit. If the script does not return from a C
 * function within hard_timeout, that handler ends the process; the server then knows not to run the request again. */
static void on_timeout(int seconds) {
    howdah_rs_timed_out();
    if (original_on_timeout != NULL) {
        original_on_timeout(seconds);
    }
}

SHIM_EXPORT int howdah_c_startup(const howdah_boot *boot) {
    shim.boot = boot;
    shim.worker = boot->worker;
    shim.mode = shim_mode_of(shim.worker->mode);
    signal(SIGPIPE, SIG_IGN);
    if (shim.mode->before_php != NULL) {
        shim.mode->before_php();
    }
    shim_opcache_room_startup();
    SHIM_SIGNALS_STARTUP();
    sapi_startup(&shim_sapi_module);
    if (*shim.worker->ini_path != '\0') {
        ini_path = strdup(shim.worker->ini_path);
        shim_sapi_module.php_ini_path_override = ini_path;
    }
    ini_text = ini_text_of_all();
    shim_sapi_module.ini_entries = SHIM_INI_ENTRIES(ini_text);
    if (shim_sapi_module.startup(&shim_sapi_module) == FAILURE) {
        shim_log(LOG_CRIT, "PHP did not start");
        sapi_shutdown();
        return 1;
    }
    started = true;
    lock_settings(shim.worker->admin_ini_names);
    /* The shim enters the script's directory itself (script.c). */
    SG(options) |= SAPI_OPTION_NO_CHDIR;
    original_on_timeout = zend_on_timeout;
    zend_on_timeout = on_timeout;
    shim_server_array_hook();
    shim_script_startup();
    shim_random_install();
    shim_changes_watch();
    shim_error_page_begin();
    if (shim.mode->after_php != NULL) {
        shim.mode->after_php();
    }
    return 0;
}

SHIM_EXPORT void howdah_c_shutdown(void) {
    if (!started) {
        return;
    }
    started = false;
    shim_user_ini_shutdown();
    php_module_shutdown();
    sapi_shutdown();
    shim_input_shutdown();
    free(ini_text);
    ini_text = NULL;
    /* php_ini_path_override has no other owner. */
    free(ini_path);
    ini_path = NULL;
}

SHIM_EXPORT const char *howdah_c_php_version(void) {
    return started ? shim_compat_php_version() : PHP_VERSION;
}

SHIM_EXPORT uint32_t howdah_c_loaded_version(void) {
    return shim_compat_loaded_version();
}

SHIM_EXPORT const char *howdah_c_loaded_library(void) {
    Dl_info found;
    return dladdr((const void *)php_module_startup, &found) != 0 ? found.dli_fname : NULL;
}
