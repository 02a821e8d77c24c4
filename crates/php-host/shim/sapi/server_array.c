/* $_SERVER and $_ENV. Names of variables that travel as numbers are interned strings made once, so each costs one hash
 * insertion; nothing is built before a script asks for it (auto_globals_jit).
 *
 * ext/filter wants to see every variable, to have it ready for filter_input(INPUT_SERVER): that more than doubles the
 * cost of $_SERVER, and hardly any script asks. So, as long as filter.default leaves values alone, it is shown them
 * when a script calls one of its functions, and not before. */
#include "sapi/server_array.h"

#include "shim.h"
#include "modes/mode.h"
#include "modes/script_loop.h"
#include "sapi/functions.h"
#include "sapi/input.h"
#include "sapi/server_array_reuse.h"

#include <string.h>

static zend_string *known_keys[HOWDAH_VAR_COUNT + 1];
static zend_string *php_self_key;

/* PHP's own import of the process environment, which ours extends. */
static void (*import_process_environment)(zval *array);

/* Functions of ext/filter that read what it was shown. */
static zif_handler original_filter_input;
static zif_handler original_filter_input_array;
static zif_handler original_filter_has_var;
/* The request for which ext/filter has been shown the variables. */
static const WireRequest *filter_fed;

void shim_server_array_startup(void) {
    for (size_t i = 1; i <= HOWDAH_VAR_COUNT; i++) {
        known_keys[i] = zend_string_init_interned(shim_known_names[i].text, shim_known_names[i].length, 1);
    }
    php_self_key = zend_string_init_interned(ZEND_STRL("PHP_SELF"), 1);
}

zend_string *shim_known_key(const WireVar *var) {
    return var->name_id != 0 && var->name_id <= HOWDAH_VAR_COUNT ? known_keys[var->name_id] : NULL;
}

/* Adds a value under a name that is not known beforehand. PHP would make an array of a name with '[', put '_' in place
 * of others and a number in place of digits; ordinary names need none of that. */
static void add_named(zval *array, const char *name, size_t name_len, const char *value, size_t length) {
    if (name_len <= 5 || memcmp(name, "HTTP_", 5) != 0 || strcspn(name, " .[") != name_len) {
        php_register_variable_safe(name, value, length, array);
        return;
    }
    zval entry;
    ZVAL_STRINGL_FAST(&entry, value, length);
    zend_hash_str_update(Z_ARRVAL_P(array), name, name_len, &entry);
}

static void add_known(zval *array, zend_string *key, const char *value, size_t length) {
    zval entry;
    ZVAL_STRINGL_FAST(&entry, value, length);
    zend_hash_update(Z_ARRVAL_P(array), key, &entry);
}

static void add_request_variables(zval *array, uint32_t first) {
    for (uint32_t i = first; i < shim.request->n_vars; i++) {
        const WireVar *var = &shim.vars[i];
        zend_string *key = shim_known_key(var);
        if (key != NULL) {
            add_known(array, key, shim_text(var->value), var->value.len);
        } else {
            add_named(array, shim_text(var->name), var->name.len, shim_text(var->value), var->value.len);
        }
    }
}

/* The script's name with the path behind it. */
static char *php_self(size_t *length) {
    size_t name_len, info_len;
    const char *name = shim_known_var(SHIM_VAR_SCRIPT_NAME, &name_len);
    const char *info = shim_known_var(SHIM_VAR_PATH_INFO, &info_len);
    char *self = emalloc(name_len + info_len + 1);
    memcpy(self, name != NULL ? name : "", name_len);
    memcpy(self + name_len, info != NULL ? info : "", info_len);
    self[name_len + info_len] = '\0';
    *length = name_len + info_len;
    return self;
}

/* As CGI does it: ext/filter decides, keeps a copy for itself and adds the variable to the array. */
static void add_filtered(zval *array, int source, const char *name, const char *value, size_t length) {
    char *filtered = (char *)value;
    size_t filtered_length = length;
    if (sapi_module.input_filter(source, name, &filtered, length, &filtered_length)) {
        php_register_variable_safe(name, filtered, filtered_length, array);
    }
}

static void add_request_variables_filtered(zval *array, int source) {
    for (uint32_t i = 0; i < shim.request->n_vars; i++) {
        size_t name_len;
        const char *name = shim_var_name(&shim.vars[i], &name_len);
        add_filtered(array, source, name, shim_text(shim.vars[i].value), shim.vars[i].value.len);
    }
    if (source == PARSE_SERVER) {
        size_t length;
        char *self = php_self(&length);
        add_filtered(array, source, "PHP_SELF", self, length);
        efree(self);
    }
}

/* Shows ext/filter the variables of the current request, unless it has seen them. It also adds them to the array in
 * http_globals; scripts may have theirs changed by now, so it gets another one meanwhile. */
static void feed_filter(const zend_execute_data *execute_data) {
    const zval *source = ZEND_CALL_NUM_ARGS(execute_data) > 0 ? ZEND_CALL_VAR_NUM(execute_data, 0) : NULL;
    bool wanted = source == NULL || Z_TYPE_P(source) != IS_LONG || Z_LVAL_P(source) == PARSE_SERVER;
    if (!wanted || shim.request == NULL || filter_fed == shim.request) {
        return;
    }
    /* First $_SERVER itself, which PHP would make otherwise in the middle of this. */
    zend_is_auto_global_str(ZEND_STRL("_SERVER"));
    if (filter_fed == shim.request) {
        return;
    }
    filter_fed = shim.request;
    zval *slot = &PG(http_globals)[TRACK_VARS_SERVER];
    zval kept;
    ZVAL_COPY_VALUE(&kept, slot);
    array_init(slot);
    add_request_variables_filtered(slot, PARSE_SERVER);
    zval_ptr_dtor(slot);
    ZVAL_COPY_VALUE(slot, &kept);
}

static ZEND_NAMED_FUNCTION(watched_filter_input) {
    feed_filter(execute_data);
    original_filter_input(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_NAMED_FUNCTION(watched_filter_input_array) {
    feed_filter(execute_data);
    original_filter_input_array(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_NAMED_FUNCTION(watched_filter_has_var) {
    feed_filter(execute_data);
    original_filter_has_var(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* Whether the filter may be fed later: it only keeps copies and its functions are watched. */
static bool filter_can_wait(void) {
    if (sapi_module.input_filter == php_default_input_filter) {
        return true;
    }
    if (original_filter_input == NULL || original_filter_input_array == NULL || original_filter_has_var == NULL) {
        return false;
    }
    static const zend_ini_entry *filter;
    if (filter == NULL) {
        filter = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("filter.default"));
    }
    return filter == NULL || filter->value == NULL || ZSTR_LEN(filter->value) == 0 ||
           zend_string_equals_literal(filter->value, "unsafe_raw");
}

void shim_add_request_variables(zval *array, uint32_t first) {
    zend_hash_extend(Z_ARRVAL_P(array), zend_hash_num_elements(Z_ARRVAL_P(array)) + shim.request->n_vars - first + 8,
                     0);
    add_request_variables(array, first);
    size_t length;
    char *self = php_self(&length);
    add_known(array, php_self_key, self, length);
    efree(self);
}

void shim_sapi_register_variables(zval *array) {
    bool keeps = shim.request != NULL && shim.mode->kept_server_arrays > 0 && filter_can_wait();
    if (keeps && shim_kept_reuse(array)) {
        return;
    }
    import_process_environment(array);
    if (shim.request == NULL) {
        shim_loop_boot_variables(array);
        return;
    }
    if (!filter_can_wait()) {
        filter_fed = shim.request;
        add_request_variables_filtered(array, PARSE_SERVER);
        return;
    }
    uint32_t environment = zend_hash_num_elements(Z_ARRVAL_P(array));
    shim_add_request_variables(array, 0);
    if (keeps) {
        shim_kept_store(array, environment);
    }
}

/* $_ENV: process environment first, then the request's variables, as under FPM. */
static void import_environment(zval *array) {
    import_process_environment(array);
    if (shim.request != NULL) {
        add_request_variables_filtered(array, PARSE_ENV);
    }
}

/* getenv() without a name: the same, unfiltered. */
static void load_environment(zval *array) {
    import_process_environment(array);
    if (shim.request != NULL) {
        add_request_variables(array, 0);
    }
}

void shim_server_array_hook(void) {
    shim_kept_startup();
    import_process_environment = php_import_environment_variables;
    php_import_environment_variables = import_environment;
    php_load_environment_variables = load_environment;
    original_filter_input = shim_watch_function(ZEND_STRL("filter_input"), watched_filter_input);
    original_filter_input_array = shim_watch_function(ZEND_STRL("filter_input_array"), watched_filter_input_array);
    original_filter_has_var = shim_watch_function(ZEND_STRL("filter_has_var"), watched_filter_has_var);
}

void shim_server_array_reset(void) {
    filter_fed = NULL;
}
