/* frankenphp_handle_request(), headers_send() and frankenphp_log() with FrankenPHP's signatures, so that worker scripts
 * written for it run as they are; Howdah\handle_request() is the same function. */
#include "async.h"
#include "snapshot_request.h"
#include "worker_loop.h"

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
    if (!shim_loop_may_serve() || async_serving) {
        const char *why = shim.mode->resident ? "frankenphp_handle_request() called while a request is being handled"
                                              : "frankenphp_handle_request() called while not in worker mode";
        zend_throw_exception(spl_ce_RuntimeException, why, 0);
        RETURN_THROWS();
    }
    if (shim.mode == &shim_mode_async) {
        RETURN_BOOL(async_serve(&function, &cache));
    }
    RETURN_BOOL(shim.mode == &shim_mode_snapshot ? shim_snapshot_turn(&function, &cache)
                                                 : shim_loop_turn(&function, &cache));
}

/* Sends the headers set so far: as an interim answer (1xx), after which they stay set, or as the answer's own. */
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
