/* The functions that this SAPI provides to scripts: those of PHP-FPM and mod_php that applications test for, and
 * Howdah's own in the namespace Howdah. All of them, including those of other files, are declared in
 * php/stubs/howdah.stub.php, from which `make generate` makes howdah_arginfo.h. */
#include "sapi/functions.h"

#include "shim.h"
#include "async/core/coroutine_class.h"
#include "async/core/websocket_connection.h"
#include "async/pools/pools.h"
#include "async/tools/stacks.h"
#include "howdah_arginfo.h"
#include "modes/mode.h"
#include "process/sandbox.h"
#include "sapi/descriptor_text.h"
#include "sapi/current_request.h"
#include "sapi/input.h"
#include "sapi/log.h"
#include "sapi/request_variables.h"
#include "sapi/websocket.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <zend_interfaces.h>

/* Completes the response; the script continues. Returns true only for the call that completed it. */
PHP_FUNCTION(fastcgi_finish_request) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (shim.request == NULL || shim.response_ended) {
        RETURN_FALSE;
    }
    php_output_end_all();
    php_header();
    RETURN_BOOL(shim_response_end(false));
}

/* PHP-FPM's function: the state of the pool. A process that a script has forked has no pool. */
PHP_FUNCTION(fpm_get_status) {
    ZEND_PARSE_PARAMETERS_NONE();
    int file = shim.request == NULL || shim.script_child ? -1 : howdah_rs_pool_status();
    zend_string *text = file < 0 ? NULL : shim_read_text(file);
    if (text == NULL) {
        RETURN_FALSE;
    }
    php_json_decode(return_value, ZSTR_VAL(text), ZSTR_LEN(text), true, PHP_JSON_PARSER_DEFAULT_DEPTH);
    zend_string_release(text);
}

/* "HTTP_ACCEPT_LANGUAGE" and "CONTENT_TYPE" become "Accept-Language" and "Content-Type". */
static void add_request_header(zval *array, const char *name, size_t length, StrRef value) {
    if (length > 5 && memcmp(name, "HTTP_", 5) == 0) {
        name += 5;
        length -= 5;
    } else if (!(length == 12 && memcmp(name, "CONTENT_TYPE", 12) == 0) &&
               !(length == 14 && memcmp(name, "CONTENT_LENGTH", 14) == 0)) {
        return;
    }
    zend_string *header = zend_string_alloc(length, 0);
    bool first = true;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (c == '_') {
            c = '-';
        } else if (!first && c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        first = c == '-';
        ZSTR_VAL(header)[i] = c;
    }
    ZSTR_VAL(header)[length] = '\0';
    zval text;
    ZVAL_STRINGL_FAST(&text, shim_text(value), value.len);
    zend_symtable_update(Z_ARRVAL_P(array), header, &text);
    zend_string_release(header);
}

PHP_FUNCTION(apache_request_headers) {
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    if (shim.request == NULL) {
        return;
    }
    for (uint32_t i = 0; i < shim.request->n_vars; i++) {
        size_t length;
        const char *name = shim_var_name(&shim.vars[i], &length);
        add_request_header(return_value, name, length, shim.vars[i].value);
    }
}

PHP_FUNCTION(apache_response_headers) {
    ZEND_PARSE_PARAMETERS_NONE();
    array_init(return_value);
    zend_llist *headers = &SG(sapi_headers).headers;
    zend_llist_position position;
    const sapi_header_struct *header = zend_llist_get_first_ex(headers, &position);
    for (; header != NULL; header = zend_llist_get_next_ex(headers, &position)) {
        const char *colon = memchr(header->header, ':', header->header_len);
        if (colon == NULL) {
            continue;
        }
        const char *end = header->header + header->header_len;
        const char *value = colon + 1;
        while (value < end && (*value == ' ' || *value == '\t')) {
            value++;
        }
        add_assoc_stringl_ex(return_value, header->header, (size_t)(colon - header->header), value,
                             (size_t)(end - value));
    }
}

void shim_log_with_context(int level, const zend_string *message, HashTable *context) {
    if (context == NULL || zend_hash_num_elements(context) == 0) {
        shim_log_line(level, ZSTR_VAL(message), ZSTR_LEN(message));
        return;
    }
    smart_str line = {0};
    smart_str_append(&line, message);
    smart_str_appendc(&line, ' ');
    zval values;
    ZVAL_ARR(&values, context);
    php_json_encode(&line, &values,
                    PHP_JSON_UNESCAPED_SLASHES | PHP_JSON_UNESCAPED_UNICODE | PHP_JSON_INVALID_UTF8_SUBSTITUTE |
                        PHP_JSON_PARTIAL_OUTPUT_ON_ERROR);
    smart_str_0(&line);
    if (EG(exception) == NULL) {
        shim_log_line(level, ZSTR_VAL(line.s), ZSTR_LEN(line.s));
    }
    smart_str_free(&line);
}

PHP_FUNCTION(Howdah_log) {
    zend_string *message;
    zend_long level = LOG_INFO;
    HashTable *context = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 3)
    Z_PARAM_STR(message)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(level)
    Z_PARAM_ARRAY_HT(context)
    ZEND_PARSE_PARAMETERS_END();
    if (level < LOG_EMERG || level > LOG_DEBUG) {
        zend_argument_value_error(2, "must be between 0 and 7");
        RETURN_THROWS();
    }
    shim_log_with_context((int)level, message, context);
}

PHP_FUNCTION(Howdah_mode) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_STRING(shim.mode->name);
}

PHP_FUNCTION(Howdah_request_id) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (shim.request == NULL) {
        RETURN_EMPTY_STRING();
    }
    char digits[17];
    (snprintf)(digits, sizeof digits, "%016" PRIx64, shim.request->id);
    RETURN_STRINGL(digits, 16);
}

PHP_FUNCTION(Howdah_route) {
    char *name;
    size_t length;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STRING(name, length)
    ZEND_PARSE_PARAMETERS_END();
    if (shim.request != NULL && !shim.response_ended) {
        howdah_rs_route(name, length);
    }
}

PHP_INI_BEGIN()
/* Async mode; see async/tools/time_slice.c, async/tools/audit.c and async/tools/stacks.c. */
PHP_INI_ENTRY("howdah.time_slice", "0", PHP_INI_SYSTEM, NULL)
PHP_INI_ENTRY("howdah.audit", "0", PHP_INI_SYSTEM, NULL)
PHP_INI_ENTRY("howdah.traces", "0", PHP_INI_SYSTEM, NULL)
/* PHP-FPM's; see sapi/script.c. */
PHP_INI_ENTRY("fastcgi.error_header", "", PHP_INI_SYSTEM, NULL)
PHP_INI_END()

static PHP_MINIT_FUNCTION(howdah) {
    /* libphp defines chroot(), as it is made for embedding; PHP-FPM does not. After it, the process would serve its
     * next requests from that root. A request's end removes all functions after
     * EG(persistent_functions_count), a position in the table. A hole before that position would close when the table
     * grows; a function of the script would move into it and stay. This leaves no hole, as in
     * zend_disable_functions(). */
    zend_hash_str_del(CG(function_table), ZEND_STRL("chroot"));
    zend_hash_rehash(CG(function_table));
    REGISTER_INI_ENTRIES();
    shim_request_variables_startup();
    register_howdah_symbols(module_number);
    register_class_Howdah_WebSocket();
    websocket_class_startup(register_class_Howdah_WebSocketEvent());
    websocket_connection_class_startup(register_class_Howdah_WebSocketConnection(zend_ce_iterator));
    coroutine_class_startup(register_class_Howdah_Coroutine());
    async_stacks_class_startup();
    async_pools_class_startup();
    shim_sandbox_startup();
    return SUCCESS;
}

static PHP_RSHUTDOWN_FUNCTION(howdah) {
    (void)type;
    (void)module_number;
    /* No script runs any more: the rest of the body is not needed, so PHP need not read it to the end. */
    SG(post_read) = 1;
    return SUCCESS;
}

static PHP_MINFO_FUNCTION(howdah) {
    (void)zend_module;
    php_info_print_table_start();
    php_info_print_table_row(2, "Server", shim.worker->software);
    php_info_print_table_row(2, "Mode", shim.mode->name);
    php_info_print_table_end();
}

/* clang-format off */
zend_module_entry shim_module = {
    STANDARD_MODULE_HEADER,
    "howdah",
    ext_functions,
    PHP_MINIT(howdah),
    NULL,
    NULL,
    PHP_RSHUTDOWN(howdah),
    PHP_MINFO(howdah),
    NULL,
    STANDARD_MODULE_PROPERTIES,
};
/* clang-format on */
