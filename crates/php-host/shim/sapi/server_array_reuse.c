/* Reuses $_SERVER of a resident script from one request to the next. Most of it stays the same: the process
 * environment, the names and most values of the variables. So the array of the previous request is kept as it was made
 * and updated where the new request differs, instead of some sixty insertions. In async mode, several requests have
 * their arrays at the same time, so several are kept.
 *
 * A script's changes of $_SERVER never reach the kept array: the reference held here makes PHP give the script a copy
 * when it writes. A script that still holds the array itself (such as a request object of an earlier request) keeps it
 * unchanged: then a copy is updated instead. */
#include "sapi/server_array_reuse.h"

#include "shim.h"
#include "modes/mode.h"
#include "sapi/input.h"
#include "sapi/request_variables.h"
#include "sapi/watch_function.h"

#include <string.h>

typedef struct kept_array {
    HashTable *table;
    /* Number of its elements that this file made; PHP adds more after them (PHP_AUTH_USER, REQUEST_TIME, argv). */
    uint32_t elements;
    /* Number of these that come from the process environment. */
    uint32_t environment;
} kept_array;

/* Those at the front are used most; empty entries come last. */
static kept_array kept_arrays[SHIM_KEPT_SERVER_ARRAYS];

static zif_handler original_putenv;

static void forget(kept_array *kept) {
    if (kept->table != NULL) {
        zend_array_release(kept->table);
        kept->table = NULL;
    }
}

void shim_kept_forget(void) {
    for (size_t i = 0; i < SHIM_KEPT_SERVER_ARRAYS && kept_arrays[i].table != NULL; i++) {
        forget(&kept_arrays[i]);
    }
}

static ZEND_NAMED_FUNCTION(watched_putenv) {
    shim_kept_forget();
    original_putenv(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void shim_kept_startup(void) {
    original_putenv = shim_watch_function(ZEND_STRL("putenv"), watched_putenv);
}

/* True if the environment has names that PHP itself adds after these elements. PHP would then overwrite the element
 * instead of adding one. */
static bool contains_php_names(HashTable *table) {
    static const char *const names[] = {
        "PHP_AUTH_USER", "PHP_AUTH_PW", "PHP_AUTH_DIGEST", "REQUEST_TIME", "REQUEST_TIME_FLOAT", "argv", "argc"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (zend_hash_str_exists(table, names[i], strlen(names[i]))) {
            return true;
        }
    }
    return false;
}

/* `new_names`: the array's names differ from when it was last kept. */
static void store(kept_array *kept, zval *array, uint32_t environment, bool new_names) {
    HashTable *table = Z_ARRVAL_P(array);
    uint32_t elements = environment + shim.request->n_vars + 1;
    /* Fewer elements: a name occurred twice, so the positions do not match. */
    if (table->nNumUsed != elements || table->nNumOfElements != elements || (new_names && contains_php_names(table))) {
        shim_kept_forget();
        return;
    }
    kept->elements = elements;
    kept->environment = environment;
    if (kept->table != table) {
        forget(kept);
        kept->table = table;
        GC_ADDREF(table);
    }
    /* PHP adds to the array after this, and those additions must reach the array through the reference held here. */
    HT_ALLOW_COW_VIOLATION(table);
}

void shim_kept_store(zval *array, uint32_t environment) {
    shim_kept_forget();
    store(&kept_arrays[0], array, environment, true);
}

/* True if the array has no other holders than this file and the previous request's $_SERVER. */
static bool is_free(HashTable *table) {
    if (GC_REFCOUNT(table) == 1) {
        return true;
    }
    const zval *global = zend_hash_str_find(&EG(symbol_table), ZEND_STRL("_SERVER"));
    return GC_REFCOUNT(table) == 2 && global != NULL && Z_TYPE_P(global) == IS_ARRAY && Z_ARR_P(global) == table;
}

/* Returns a free array; otherwise a copy of the first, in a new entry while there is one. */
static kept_array *take_cached_array(void) {
    size_t i = 0;
    for (; i < shim.mode->kept_server_arrays && kept_arrays[i].table != NULL; i++) {
        if (is_free(kept_arrays[i].table)) {
            return &kept_arrays[i];
        }
    }
    kept_array copy = kept_arrays[0];
    copy.table = zend_array_dup(copy.table);
    if (i == shim.mode->kept_server_arrays) {
        i = 0;
        forget(&kept_arrays[0]);
    }
    kept_arrays[i] = copy;
    return &kept_arrays[i];
}

static void truncate_array(HashTable *table, uint32_t elements) {
    while (table->nNumUsed > elements) {
        zend_hash_del_bucket(table, table->arData + table->nNumUsed - 1);
    }
}

/* Sets an element to the value if it has that name and holds a string. */
static bool update_element(Bucket *element, const WireVar *var) {
    if (element->key == NULL || Z_TYPE(element->val) != IS_STRING) {
        return false;
    }
    const zend_string *key = shim_known_key(var);
    if (key != NULL ? element->key != key
                    : !zend_string_equals_cstr(element->key, shim_text(var->name), var->name.len)) {
        return false;
    }
    if (!zend_string_equals_cstr(Z_STR(element->val), shim_text(var->value), var->value.len)) {
        zval_ptr_dtor_str(&element->val);
        ZVAL_STRINGL_FAST(&element->val, shim_text(var->value), var->value.len);
    }
    return true;
}

bool shim_kept_reuse(zval *array) {
    if (kept_arrays[0].table == NULL) {
        return false;
    }
    kept_array *kept = take_cached_array();
    HashTable *table = kept->table;
    truncate_array(table, kept->elements);
    if (table->nNumUsed != kept->elements || table->nNumOfElements != kept->elements) {
        shim_kept_forget();
        return false;
    }
    uint32_t same = 0;
    uint32_t candidates = kept->elements - 1 - kept->environment;
    while (same < shim.request->n_vars && same < candidates &&
           update_element(table->arData + kept->environment + same, &shim.vars[same])) {
        same++;
    }
    bool all = same == shim.request->n_vars && same == candidates;
    if (!all) {
        truncate_array(table, kept->environment + same);
    }
    zend_array_destroy(Z_ARR_P(array));
    ZVAL_ARR(array, table);
    GC_ADDREF(table);
    HT_ALLOW_COW_VIOLATION(table);
    /* PHP_SELF is last; an update in place is an ordinary insertion. */
    shim_add_request_variables(array, same);
    store(kept, array, kept->environment, !all);
    return true;
}
