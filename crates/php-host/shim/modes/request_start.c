/* The start of a request inside a resident script: the parts of php_request_startup() that concern the request and not
 * the script.
 *
 * PHP parses a request before there is any code of the application. Its warnings (too many variables, a body above
 * post_max_size, a missing boundary) are "PHP Request Startup: ... in Unknown on line 0": they are logged, and no
 * handler of the application gets them. Extensions check the same state: ext/session reports upload progress only while
 * no module is active. So this file installs that state for the time of parsing and restores the script's own
 * afterwards. */
#include "modes/request_start.h"

#include "shim.h"
#include "modes/opcache_clock.h"
#include "modes/reset.h"
#include "sapi/input.h"
#include "sapi/user_ini.h"

/* The script's values of the state that is replaced while PHP parses a request. */
typedef struct script_state {
    zend_execute_data *frame;
    zval error_handler;
    zval exception_handler;
    bool modules_activated;
    bool upload_progress;
} script_state;

/* True if the application has set session handlers. At the start of a fresh request, before the application's code
 * exists, PHP knows of none. */
static bool handles_sessions_itself(void) {
    return SHIM_HAS_SESSION() && !Z_ISUNDEF(*(const zval *)&PS(mod_user_names));
}

static script_state hide_script(void) {
    script_state script = {.frame = EG(current_execute_data), .modules_activated = PG(modules_activated)};
    ZVAL_COPY_VALUE(&script.error_handler, &EG(user_error_handler));
    ZVAL_COPY_VALUE(&script.exception_handler, &EG(user_exception_handler));
    ZVAL_UNDEF(&EG(user_error_handler));
    ZVAL_UNDEF(&EG(user_exception_handler));
    EG(current_execute_data) = NULL;
    PG(modules_activated) = 0;
    PG(during_request_startup) = 1;
    if (handles_sessions_itself()) {
        script.upload_progress = PS(rfc1867_enabled);
        PS(rfc1867_enabled) = false;
    }
    return script;
}

static void show_script(const script_state *script) {
    if (handles_sessions_itself()) {
        PS(rfc1867_enabled) = script->upload_progress;
    }
    PG(during_request_startup) = 0;
    PG(modules_activated) = script->modules_activated;
    EG(current_execute_data) = script->frame;
    ZVAL_COPY_VALUE(&EG(user_exception_handler), &script->exception_handler);
    ZVAL_COPY_VALUE(&EG(user_error_handler), &script->error_handler);
}

static void start(void) {
    shim_request_settings();
    sapi_activate();
    if (PG(expose_php) && !SG(headers_sent)) {
        sapi_add_header(SAPI_PHP_VERSION_HEADER, sizeof(SAPI_PHP_VERSION_HEADER) - 1, 1);
    }
    shim_reset_output_open();
    shim_reset_superglobals();
    shim_reset_compression_open();
    if (!handles_sessions_itself()) {
        shim_reset_session_open();
    }
}

void shim_request_start(void) {
    shim_opcache_clock_now();
    shim_reset_status();
    shim_reset_file_status();
    shim_input_prepare();
    SG(request_info).no_headers = 0;
    const script_state script = hide_script();
    volatile bool bailed = true;
    zend_try {
        start();
        bailed = false;
    }
    zend_end_try();
    show_script(&script);
    if (bailed) {
        zend_bailout();
    }
    if (handles_sessions_itself()) {
        shim_reset_session_open();
    }
}
