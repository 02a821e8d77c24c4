/* Converts the variables of a request to array elements. Names that are transferred as numbers are interned strings
 * made once, so each costs one hash insertion. */
#include "sapi/request_variables.h"

#include "shim.h"
#include "sapi/input.h"

#include <string.h>

static zend_string *known_keys[HOWDAH_VAR_COUNT + 1];
static zend_string *php_self_key;

void shim_request_variables_startup(void) {
    for (size_t i = 1; i <= HOWDAH_VAR_COUNT; i++) {
        known_keys[i] = zend_string_init_interned(shim_known_names[i].text, shim_known_names[i].length, 1);
    }
    php_self_key = zend_string_init_interned(ZEND_STRL("PHP_SELF"), 1);
}

zend_string *shim_known_key(const WireVar *var) {
    return var->name_id != 0 && var->name_id <= HOWDAH_VAR_COUNT ? known_keys[var->name_id] : NULL;
}

/* Adds a value under a name that is not known beforehand. PHP makes an array of a name with '[', replaces some
 * characters with '_' and converts digits to a number; ordinary names need none of that. */
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

void shim_add_variables(zval *array, uint32_t first) {
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

/* Returns the script's name followed by PATH_INFO. */
char *shim_php_self(size_t *length) {
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

void shim_add_request_variables(zval *array, uint32_t first) {
    zend_hash_extend(Z_ARRVAL_P(array), zend_hash_num_elements(Z_ARRVAL_P(array)) + shim.request->n_vars - first + 8,
                     0);
    shim_add_variables(array, first);
    size_t length;
    char *self = shim_php_self(&length);
    add_known(array, php_self_key, self, length);
    efree(self);
}
