/* PHP reads the process environment for each $_SERVER: it checks every name, and allocates every name and value. Here
 * the result is kept, and copied as long as the environment is as it was. Names and values are made permanent, so that
 * the copy writes nothing but the new array.
 *
 * The environment is compared by the addresses of its variables: setting one changes its address. */
#include "sapi/environment.h"

#include "shim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Free places in the array, so that a request's variables need no larger one. */
#define PLACES 48

/* The variables that `kept` was made from. */
static char **known;
static size_t n_known;
static HashTable *kept;
static bool tried;

static bool is_known(void) {
    size_t n = 0;
    while (n < n_known && environ != NULL && environ[n] == known[n]) {
        n++;
    }
    return n_known != 0 && n == n_known && environ[n] == NULL;
}

static zend_string *permanent(const char *text, size_t length) {
    zend_string *string = zend_string_init(text, length, 1);
    zend_string_hash_val(string);
    GC_ADD_FLAGS(string, IS_STR_INTERNED | IS_STR_PERMANENT);
    return string;
}

/* Variables with a number as their name are elements without a key; an environment with one is not kept. */
static HashTable *permanent_copy(const HashTable *elements) {
    HashTable *copy = malloc(sizeof *copy);
    if (copy == NULL) {
        return NULL;
    }
    zend_hash_init(copy, zend_hash_num_elements(elements) + PLACES, NULL, NULL, 1);
    zend_hash_real_init_mixed(copy);
    zend_string *name;
    const zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL((HashTable *)elements, name, value) {
        if (name == NULL || Z_TYPE_P(value) != IS_STRING) {
            zend_hash_destroy(copy);
            free(copy);
            return NULL;
        }
        zval element;
        ZVAL_INTERNED_STR(&element, permanent(Z_STRVAL_P(value), Z_STRLEN_P(value)));
        zend_hash_add_new(copy, permanent(ZSTR_VAL(name), ZSTR_LEN(name)), &element);
    }
    ZEND_HASH_FOREACH_END();
    GC_ADD_FLAGS(copy, GC_IMMUTABLE);
    return copy;
}

static void keep(const HashTable *elements) {
    size_t n = 0;
    while (environ != NULL && environ[n] != NULL) {
        n++;
    }
    known = malloc(n * sizeof *known);
    if (n == 0 || known == NULL || (kept = permanent_copy(elements)) == NULL) {
        return;
    }
    memcpy(known, environ, n * sizeof *known);
    n_known = n;
}

void shim_environment_keep(void (*import)(zval *array)) {
    if (tried) {
        return;
    }
    /* Once per process: an environment that changes again and again is read by PHP. */
    tried = true;
    zval array;
    array_init(&array);
    import(&array);
    keep(Z_ARRVAL(array));
    zval_ptr_dtor(&array);
}

void shim_add_environment(zval *array, void (*import)(zval *array)) {
    shim_environment_keep(import);
    if (zend_hash_num_elements(Z_ARRVAL_P(array)) != 0 || !is_known()) {
        import(array);
        return;
    }
    zend_array_destroy(Z_ARR_P(array));
    ZVAL_ARR(array, zend_array_dup(kept));
}
