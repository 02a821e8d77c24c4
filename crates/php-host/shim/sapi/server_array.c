/* $_SERVER and $_ENV. With auto_globals_jit, they are built only when a script uses them.
 *
 * ext/filter expects to see every variable, to have it ready for filter_input(INPUT_SERVER). That more than doubles the
 * cost of $_SERVER, and hardly any script needs it. So, as long as filter.default leaves values unchanged, ext/filter
 * gets the variables only when a script calls one of its functions. */
#include "sapi/server_array.h"

#include "shim.h"
#include "modes/mode.h"
#include "sapi/environment.h"
#include "sapi/input.h"
#include "sapi/request_variables.h"
#include "sapi/server_array_reuse.h"
#include "sapi/watch_function.h"

/* PHP's own import of the process environment, which the functions below extend. */
static void (*import_process_environment)(zval *array);

/* Functions of ext/filter that read the variables it was given. */
static zif_handler original_filter_input;
static zif_handler original_filter_input_array;
static zif_handler original_filter_has_var;
/* The request whose variables ext/filter has been given. */
static const WireRequest *filter_fed;

/* As PHP's CGI does it: ext/filter decides, keeps a copy for itself and adds the variable to the array. */
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
        char *self = shim_php_self(&length);
        add_filtered(array, source, "PHP_SELF", self, length);
        efree(self);
    }
}

/* Gives ext/filter the variables of the current request, unless it already has them. ext/filter also adds them to the
 * array in http_globals, which the script may have changed by now, so another array is there in the meantime. */
static void feed_filter(const zend_execute_data *execute_data) {
    const zval *source = ZEND_CALL_NUM_ARGS(execute_data) > 0 ? ZEND_CALL_VAR_NUM(execute_data, 0) : NULL;
    bool wanted = source == NULL || Z_TYPE_P(source) != IS_LONG || Z_LVAL_P(source) == PARSE_SERVER;
    if (!wanted || shim.request == NULL || filter_fed == shim.request) {
        return;
    }
    /* First makes $_SERVER itself; otherwise PHP would make it in the middle of this. */
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

/* True if the filter may be fed later: it only keeps copies, and its functions are watched. */
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

void shim_sapi_register_variables(zval *array) {
    bool keeps = shim.request != NULL && shim.mode->kept_server_arrays > 0 && filter_can_wait();
    if (keeps && shim_kept_reuse(array)) {
        return;
    }
    shim_add_environment(array, import_process_environment);
    if (shim.request == NULL) {
        if (shim.mode->boot_variables != NULL) {
            shim.mode->boot_variables(array);
        }
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

void shim_server_array_prepare(void) {
    shim_environment_keep(import_process_environment);
}

/* $_ENV: process environment first, then the request's variables, as under FPM. */
static void import_environment(zval *array) {
    shim_add_environment(array, import_process_environment);
    if (shim.request != NULL) {
        add_request_variables_filtered(array, PARSE_ENV);
    }
}

/* getenv() without a name returns the same variables, unfiltered. */
static void load_environment(zval *array) {
    shim_add_environment(array, import_process_environment);
    if (shim.request != NULL) {
        shim_add_variables(array, 0);
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
