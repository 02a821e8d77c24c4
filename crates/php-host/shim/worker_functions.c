/* frankenphp_handle_request(), headers_send(), frankenphp_log() and the constants, with FrankenPHP's signatures, so
 * that worker scripts written for it run as they are; Howdah\handle_request() is the same function. */
#include "async.h"
#include "snapshot_request.h"
#include "worker_functions.h"
#include "worker_loop.h"

#include <syslog.h>

/* Levels of frankenphp_log(): those of Go's slog. */
#define LEVEL_DEBUG (-4)
#define LEVEL_INFO 0
#define LEVEL_WARN 4
#define LEVEL_ERROR 8

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_handle_request, 0, 1, _IS_BOOL, 0)
ZEND_ARG_TYPE_INFO(0, callback, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_headers_send, 0, 0, IS_LONG, 0)
ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, status, IS_LONG, 0, "200")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_frankenphp_log, 0, 1, IS_VOID, 0)
ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, level, IS_LONG, 0, "0")
ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

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

/* clang-format off */
static const zend_function_entry functions[] = {
    PHP_FE(frankenphp_handle_request, arginfo_handle_request)
    PHP_FE(frankenphp_log, arginfo_frankenphp_log)
    PHP_FE(headers_send, arginfo_headers_send)
    ZEND_NS_FALIAS("Howdah", handle_request, frankenphp_handle_request, arginfo_handle_request)
    ZEND_NS_FALIAS("Howdah", headers_send, headers_send, arginfo_headers_send)
    PHP_FE_END
};
/* clang-format on */

void shim_worker_functions_startup(int module_number) {
    zend_register_functions(NULL, functions, NULL, MODULE_PERSISTENT);
    shim_snapshot_functions_startup();
    coroutine_class_startup();
    async_stacks_class_startup();
    async_pools_class_startup();
    REGISTER_LONG_CONSTANT("FRANKENPHP_LOG_LEVEL_DEBUG", LEVEL_DEBUG, CONST_PERSISTENT);
    REGISTER_LONG_CONSTANT("FRANKENPHP_LOG_LEVEL_INFO", LEVEL_INFO, CONST_PERSISTENT);
    REGISTER_LONG_CONSTANT("FRANKENPHP_LOG_LEVEL_WARN", LEVEL_WARN, CONST_PERSISTENT);
    REGISTER_LONG_CONSTANT("FRANKENPHP_LOG_LEVEL_ERROR", LEVEL_ERROR, CONST_PERSISTENT);
}
