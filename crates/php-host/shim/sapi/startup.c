/* Start and end of PHP in a process: our sapi_module, ini settings, PHP's modules with OPcache and preloading. The
 * module bears FPM's name: OPcache starts only for names on its list, and applications ask PHP_SAPI for it. */
#include "sapi/startup.h"

#include "shim.h"
#include "modes/mode.h"
#include "process/random_source.h"
#include "sapi/current_request.h"
#include "sapi/error_page.h"
#include "sapi/functions.h"
#include "sapi/input.h"
#include "sapi/log.h"
#include "sapi/output.h"
#include "sapi/script.h"
#include "sapi/server_array.h"
#include "sapi/user_ini.h"

#include <ctype.h>
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

/* Appends one "key=value" as PHP's ini parser wants it: like php -d, a value that does not begin with a letter, a digit
 * or a quote is put into quotes. */
static char *append_entry(char *out, const char *line, size_t length) {
    const char *equals = memchr(line, '=', length);
    if (equals == NULL) {
        memcpy(out, line, length);
        out += length;
        return memcpy(out, "=1\n", 3), out + 3;
    }
    const char *value = equals + 1;
    const char *end = line + length;
    size_t key_len = (size_t)(value - line);
    memcpy(out, line, key_len);
    out += key_len;
    bool quote = value < end && !isalnum((unsigned char)*value) && *value != '"' && *value != '\'';
    if (quote) {
        *out++ = '"';
    }
    for (; value < end; value++) {
        if (quote && (*value == '"' || *value == '\\')) {
            *out++ = '\\';
        }
        *out++ = *value;
    }
    if (quote) {
        *out++ = '"';
    }
    *out++ = '\n';
    return out;
}

/* The next line that is not empty, NULL at the end; moves the position behind it. */
static const char *next_entry(const char **position, size_t *length) {
    const char *line = *position + strspn(*position, "\n");
    *length = strcspn(line, "\n");
    *position = line + *length;
    return *length > 0 ? line : NULL;
}

static char *append_entries(char *out, const char *entries) {
    const char *entry;
    size_t length;
    while ((entry = next_entry(&entries, &length)) != NULL) {
        out = append_entry(out, entry, length);
    }
    return out;
}

/* All entries as one text, or NULL without memory. What the operator sets counts, what is set for good most. */
static char *ini_text_from(const char *entries, const char *admin_entries) {
    /* Each byte at most doubles, each line gains at most four. */
    size_t length = (strlen(entries) + strlen(admin_entries)) * 6;
    char *text = malloc(strlen(shim.mode->ini) + length + 8);
    if (text == NULL) {
        return NULL;
    }
    char *out = stpcpy(text, shim.mode->ini);
    out = append_entries(append_entries(out, entries), admin_entries);
    *out = '\0';
    return text;
}

/* Takes the right to change these settings from scripts and .user.ini files. */
static void lock_entries(const char *entries) {
    const char *line;
    size_t length;
    while ((line = next_entry(&entries, &length)) != NULL) {
        size_t name_len = strcspn(line, "=\n");
        zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), line, name_len);
        if (entry != NULL) {
            entry->modifiable = ZEND_INI_SYSTEM;
        } else if (strncmp(line, "extension=", 10) != 0 && strncmp(line, "zend_extension=", 15) != 0) {
            shim_log(LOG_WARNING, "admin_ini: PHP has no setting \"%.*s\"", (int)name_len, line);
        }
    }
}

static void (*original_on_timeout)(int seconds);

/* Called by PHP's signal handler when a script has run past its time limit. Should it not come back from a function of
 * C within hard_timeout, that handler ends the process: the server then knows that it is no use to run the request
 * again.
 */
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
    SHIM_SIGNALS_STARTUP();
    sapi_startup(&shim_sapi_module);
    if (*shim.worker->ini_path != '\0') {
        ini_path = strdup(shim.worker->ini_path);
        shim_sapi_module.php_ini_path_override = ini_path;
    }
    ini_text = ini_text_from(shim.worker->ini_entries, shim.worker->admin_ini_entries);
    shim_sapi_module.ini_entries = SHIM_INI_ENTRIES(ini_text);
    if (shim_sapi_module.startup(&shim_sapi_module) == FAILURE) {
        shim_log(LOG_CRIT, "PHP did not start");
        sapi_shutdown();
        return 1;
    }
    started = true;
    lock_entries(shim.worker->admin_ini_entries);
    /* The shim enters the script's directory itself (script.c). */
    SG(options) |= SAPI_OPTION_NO_CHDIR;
    original_on_timeout = zend_on_timeout;
    zend_on_timeout = on_timeout;
    shim_server_array_hook();
    shim_script_startup();
    shim_random_install();
    shim_error_page_startup();
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
    /* php_ini_path_override is freed by nobody else. */
    free(ini_path);
    ini_path = NULL;
}

SHIM_EXPORT const char *howdah_c_php_version(void) {
    /* The version of the libphp that is loaded, which may be a later patch release than its headers. */
    const zval *version = started ? zend_get_constant_str(ZEND_STRL("PHP_VERSION")) : NULL;
    return version != NULL ? Z_STRVAL_P(version) : PHP_VERSION;
}

SHIM_EXPORT uint32_t howdah_c_loaded_version(void) {
    return shim_compat_loaded_version();
}

SHIM_EXPORT const char *howdah_c_loaded_library(void) {
    Dl_info found;
    return dladdr((const void *)php_module_startup, &found) != 0 ? found.dli_fname : NULL;
}
