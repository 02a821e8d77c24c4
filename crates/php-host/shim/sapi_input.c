/* The request as PHP sees it: request_info, body, cookies, $_SERVER, $_ENV and getenv(). Names of variables that travel
 * as numbers are interned strings made once, so $_SERVER costs one hash insertion per variable. Nothing is built before
 * a script asks for it (auto_globals_jit). */
#include "shim.h"

#include <string.h>

#define KNOWN_NAME(number, name) [number] = {#name, sizeof(#name) - 1},
static const struct {
    const char *text;
    size_t length;
} known_names[HOWDAH_VAR_COUNT + 1] = {HOWDAH_VAR_NAMES(KNOWN_NAME)};

#define KNOWN_NUMBER(number, name) VAR_##name = number,
enum { HOWDAH_VAR_NAMES(KNOWN_NUMBER) };

static zend_string *known_keys[HOWDAH_VAR_COUNT + 1];
static zend_string *php_self_key;

/* PHP's own import of the process environment, which ours extends. */
static void (*import_process_environment)(zval *array);

/* A private copy of a query string that PHP wants to write to; kept for the next one. */
static char *query_copy;
static size_t query_copy_size;

void shim_input_startup(void) {
    for (size_t i = 1; i <= HOWDAH_VAR_COUNT; i++) {
        known_keys[i] = zend_string_init_interned(known_names[i].text, known_names[i].length, 1);
    }
    php_self_key = zend_string_init_interned(ZEND_STRL("PHP_SELF"), 1);
}

void shim_input_shutdown(void) {
    free(query_copy);
    query_copy = NULL;
    query_copy_size = 0;
}

static bool known(const WireVar *var) {
    return var->name_id != 0 && var->name_id <= HOWDAH_VAR_COUNT;
}

const char *shim_var_name(const WireVar *var, size_t *length) {
    if (known(var)) {
        *length = known_names[var->name_id].length;
        return known_names[var->name_id].text;
    }
    *length = var->name.len;
    return shim_text(var->name);
}

/* The last variable of a name counts, as in an array. */
const char *shim_call_var(const char *name, size_t name_len, size_t *value_len) {
    if (shim.call == NULL) {
        return NULL;
    }
    for (uint32_t i = shim.call->n_vars; i-- > 0;) {
        size_t length;
        const char *candidate = shim_var_name(&shim.vars[i], &length);
        if (length == name_len && memcmp(candidate, name, name_len) == 0) {
            if (value_len != NULL) {
                *value_len = shim.vars[i].value.len;
            }
            return shim_text(shim.vars[i].value);
        }
    }
    return NULL;
}

static const char *known_var(uint32_t name_id, size_t *value_len) {
    for (uint32_t i = shim.call->n_vars; i-- > 0;) {
        if (shim.vars[i].name_id == name_id) {
            *value_len = shim.vars[i].value.len;
            return shim_text(shim.vars[i].value);
        }
    }
    *value_len = 0;
    return NULL;
}

/* PHP's register_argc_argv cuts the query string at each '+' in place and mends it afterwards. The lane's memory is not
 * for that. */
static char *writable_query(void) {
    const char *query = shim_text(shim.call->query);
    size_t size = (size_t)shim.call->query.len + 1;
    if (memchr(query, '+', size) == NULL) {
        return (char *)query;
    }
    if (size > query_copy_size) {
        free(query_copy);
        query_copy = malloc(size);
        query_copy_size = query_copy != NULL ? size : 0;
    }
    return query_copy != NULL ? memcpy(query_copy, query, size) : NULL;
}

void shim_input_prepare(void) {
    const WireCall *call = shim.call;
    SG(server_context) = (void *)call;
    SG(request_info).request_method = shim_text(call->method);
    SG(request_info).query_string = writable_query();
    SG(request_info).path_translated = (char *)shim_text(call->script);
    /* As under FPM this is the script's name, not the request's target. */
    size_t length;
    SG(request_info).request_uri = (char *)known_var(VAR_SCRIPT_NAME, &length);
    SG(request_info).content_type = shim_text(call->content_type);
    SG(request_info).content_length = (zend_long)call->body_len;
    SG(sapi_headers).http_response_code = 200;
    php_handle_auth_data(call->authorization.len != 0 ? shim_text(call->authorization) : NULL);
}

void shim_input_release(void) {
    SG(server_context) = NULL;
    SG(request_info).request_method = NULL;
    SG(request_info).query_string = NULL;
    SG(request_info).path_translated = NULL;
    SG(request_info).request_uri = NULL;
    SG(request_info).content_type = NULL;
    SG(request_info).content_length = 0;
}

size_t shim_sapi_read_post(char *buffer, size_t size) {
    size_t total = 0;
    while (total < size) {
        size_t length = howdah_rs_read_body(buffer + total, size - total);
        if (length == 0) {
            break;
        }
        total += length;
    }
    return total;
}

char *shim_sapi_read_cookies(void) {
    return shim.call->cookie.len != 0 ? (char *)shim_text(shim.call->cookie) : NULL;
}

char *shim_sapi_getenv(const char *name, size_t name_len) {
    return (char *)shim_call_var(name, name_len, NULL);
}

zend_result shim_sapi_request_time(double *time) {
    if (shim.call == NULL) {
        return FAILURE;
    }
    *time = (double)shim.call->received_unix_us / 1e6;
    return SUCCESS;
}

/* Adds a variable to $_SERVER or $_ENV the way CGI does: through ext/filter, which may keep it for filter_input() and
 * then adds it to the array itself. `key` is the name's interned string, or NULL. */
static void register_filtered(zval *array, zend_string *key, const char *name, const char *value, size_t length) {
    int source = Z_ARR_P(array) == Z_ARR(PG(http_globals)[TRACK_VARS_ENV]) ? PARSE_ENV : PARSE_SERVER;
    char *filtered = (char *)value;
    size_t filtered_length = length;
    if (!sapi_module.input_filter(source, name, &filtered, length, &filtered_length)) {
        return;
    }
    if (key == NULL) {
        php_register_variable_safe(name, filtered, filtered_length, array);
        return;
    }
    zval entry;
    ZVAL_STRINGL_FAST(&entry, filtered, filtered_length);
    zend_hash_update(Z_ARRVAL_P(array), key, &entry);
}

/* Process environment first, then the call's variables: these win. Used for $_SERVER and $_ENV. */
static void import_environment(zval *array) {
    import_process_environment(array);
    if (shim.call == NULL) {
        return;
    }
    for (uint32_t i = 0; i < shim.call->n_vars; i++) {
        const WireVar *var = &shim.vars[i];
        zend_string *key = known(var) ? known_keys[var->name_id] : NULL;
        const char *name = key != NULL ? ZSTR_VAL(key) : shim_text(var->name);
        register_filtered(array, key, name, shim_text(var->value), var->value.len);
    }
}

/* getenv() without a name: the same, unfiltered. */
static void load_environment(zval *array) {
    import_process_environment(array);
    if (shim.call == NULL) {
        return;
    }
    for (uint32_t i = 0; i < shim.call->n_vars; i++) {
        size_t length;
        const char *name = shim_var_name(&shim.vars[i], &length);
        php_register_variable_safe(name, shim_text(shim.vars[i].value), shim.vars[i].value.len, array);
    }
}

void shim_input_hook_environment(void) {
    import_process_environment = php_import_environment_variables;
    php_import_environment_variables = import_environment;
    php_load_environment_variables = load_environment;
}

void shim_sapi_register_variables(zval *array) {
    php_import_environment_variables(array);

    /* PHP_SELF is the script's name with the path behind it. */
    size_t name_len, info_len;
    const char *name = known_var(VAR_SCRIPT_NAME, &name_len);
    const char *info = known_var(VAR_PATH_INFO, &info_len);
    char *self = emalloc(name_len + info_len + 1);
    if (name != NULL) {
        memcpy(self, name, name_len);
    }
    if (info != NULL) {
        memcpy(self + name_len, info, info_len);
    }
    self[name_len + info_len] = '\0';
    register_filtered(array, php_self_key, "PHP_SELF", self, name_len + info_len);
    efree(self);
}
