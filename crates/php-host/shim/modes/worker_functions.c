/* frankenphp_handle_request(), headers_send() and frankenphp_log() with FrankenPHP's signatures, so that worker scripts
 * written for it run as they are; Howdah\handle_request() is the same function. */
#include "shim.h"
#include "modes/mode.h"
#include "modes/script_loop.h"
#include "sapi/functions.h"
#include "sapi/output.h"

#include <syslog.h>

/* Levels of frankenphp_log(): those of Go's slog. */
#define LEVEL_INFO 0
#define LEVEL_WARN 4
#define LEVEL_ERROR 8

PHP_FUNCTION(frankenphp_handle_request) {
    zend_fcall_info function;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(function, cache)
    ZEND_PARSE_PARAMETERS_END();
    if (shim.mode->serve == NULL || !shim_loop_may_serve()) {
        const char *why = shim.mode->serve == NULL
                              ? "frankenphp_handle_request() called while not in worker mode"
                              : "frankenphp_handle_request() called while a request is being handled";
        zend_throw_exception(spl_ce_RuntimeException, why, 0);
        RETURN_THROWS();
    }
    RETURN_BOOL(shim.mode->serve(&function, &cache));
}

/* Sends the headers set so far: as an informational response (1xx), after which they stay set, or as those of the final
 * response. */
PHP_FUNCTION(headers_send) {
    zend_long status = 200;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(status)
    ZEND_PARSE_PARAMETERS_END();
    if (status < 100 || status > 599) {
        zend_argument_value_error(1, "must be between 100 and 599");
        RETURN_THROWS();
    }
    if (status >= 200) {
        sapi_header_op(SAPI_HEADER_SET_STATUS, (void *)(intptr_t)status);
        RETURN_LONG(sapi_send_headers());
    }
    RETURN_LONG(shim_send_interim((unsigned)status));
}

static int syslog_level(zend_long level) {
    if (level < LEVEL_INFO) {
        return LOG_DEBUG;
    }
    if (level < LEVEL_WARN) {
        return LOG_INFO;
    }
    return level < LEVEL_ERROR ? LOG_WARNING : LOG_ERR;
}

PHP_FUNCTION(frankenphp_log) {
    zend_string *message;
    zend_long level = LEVEL_INFO;
    HashTable *context = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 3)
    Z_PARAM_STR(message)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(level)
    Z_PARAM_ARRAY_HT(context)
    ZEND_PARSE_PARAMETERS_END();
    shim_log_with_context(syslog_level(level), message, context);
}
