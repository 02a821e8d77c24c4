/* Step debugging with Xdebug where a script is already running when a request arrives. Xdebug checks whether a
 * debugging session is requested when PHP begins to run a main script, which is the boot here. So this file makes the
 * same check for $_GET, $_POST and $_COOKIE at the beginning of each request, and Xdebug's own function opens the
 * session. In async mode requests open no sessions.
 *
 * Snapshot mode boots without the debugger: a session is a connection that every request would continue to use, while a
 * restore resets the debugger's memory. A request's session ends with the restore. In worker mode, a session that one
 * request has opened stays for later requests until the debugger closes it. */
#include "sapi/debugger.h"

#include "shim.h"

#include <main/php_variables.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static zend_function *connect_function;
static bool with_each_request;
static bool by_trigger;

static bool is_debugging(void) {
    const char *modes = getenv("XDEBUG_MODE");
    if (modes == NULL || *modes == '\0') {
        modes = INI_STR("xdebug.mode");
    }
    return modes != NULL && strstr(modes, "debug") != NULL;
}

void shim_debugger_prepare(shim_debug_what what) {
    connect_function = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("xdebug_connect_to_client"));
    const char *start = INI_STR("xdebug.start_with_request");
    if (connect_function == NULL || start == NULL || !is_debugging()) {
        connect_function = NULL;
        return;
    }
    with_each_request = strcasecmp(start, "yes") == 0 || strcmp(start, "1") == 0 || strcasecmp(start, "on") == 0;
    by_trigger = strcasecmp(start, "trigger") == 0 || strcasecmp(start, "default") == 0;
    if (what == SHIM_DEBUG_REQUESTS && with_each_request) {
        zend_string *name = zend_string_init(ZEND_STRL("xdebug.start_with_request"), 1);
        zend_alter_ini_entry_chars(name, ZEND_STRL("trigger"), PHP_INI_SYSTEM, PHP_INI_STAGE_STARTUP);
        zend_string_release(name);
    }
}

/* True if a variable of the request asks for a session: any value, or the configured one. */
static bool requests_session(const zval *variables) {
    static const char *const names[] = {"XDEBUG_SESSION", "XDEBUG_TRIGGER", "XDEBUG_SESSION_START"};
    const char *wanted = INI_STR("xdebug.trigger_value");
    if (Z_TYPE_P(variables) != IS_ARRAY) {
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const zval *value = zend_hash_str_find(Z_ARRVAL_P(variables), names[i], strlen(names[i]));
        if (value != NULL && (wanted == NULL || *wanted == '\0' ||
                              (Z_TYPE_P(value) == IS_STRING && strcmp(Z_STRVAL_P(value), wanted) == 0))) {
            return true;
        }
    }
    return false;
}

void shim_debugger_begin(void) {
    if (connect_function == NULL) {
        return;
    }
    const zval *variables = PG(http_globals);
    if (with_each_request ||
        (by_trigger && (requests_session(&variables[TRACK_VARS_GET]) || requests_session(&variables[TRACK_VARS_POST]) ||
                        requests_session(&variables[TRACK_VARS_COOKIE])))) {
        zval result;
        ZVAL_UNDEF(&result);
        zend_call_known_function(connect_function, NULL, NULL, &result, 0, NULL, NULL);
        zval_ptr_dtor(&result);
    }
}
