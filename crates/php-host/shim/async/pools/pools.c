/* What the library's connection pools (library/Pool.php) need from C: their numbers for `howdah status` and the
 * metrics, and what mysqlnd knows about a transaction of mysqli.
 *
 * A pool counts in ordinary PHP properties, which cost what a property costs. The scheduler reads them here before it
 * sleeps, and writes them into the page of the lane where the server finds them. Pools are known weakly; what a pool
 * has counted stays in its name's numbers when it goes. */
#include "async/pools/pools.h"

#include "shim.h"

#include <zend_weakrefs.h>
#if SHIM_WITH_MYSQLI
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <ext/mysqli/php_mysqli_structs.h>
#pragma GCC diagnostic pop
#endif

/* Numbers before this one are of now, the others only grow. */
#define FIRST_COUNTER POOL_TAKEN

/* A name and what the pools that had it have counted. */
typedef struct name_slot {
    char name[POOL_NAME_LEN];
    size_t length;
    unsigned pools;
    uint64_t past[POOL_NUMBERS];
} name_slot;

typedef struct watched_pool {
    /* The Pool, weakly; its PoolNumbers, which know nothing of it. */
    zend_object *pool;
    zend_object *numbers;
    unsigned slot;
} watched_pool;

/* Where properties lie in their objects. */
typedef struct layout {
    uint32_t max, open, idle, lent, line, waiting;
    uint32_t counters[POOL_NUMBERS];
} layout;

static name_slot slots[POOL_SLOTS];
static unsigned slots_used;
/* By pool: watched_pool. */
static HashTable watched;
static layout at;

/* Properties of PoolNumbers; a float is seconds, an int a count. */
static const char *const counter_names[POOL_NUMBERS] = {
    [POOL_WAIT_MAX_NS] = "wait_max_seconds",
    [POOL_TAKEN] = "taken",
    [POOL_WAITED] = "waited",
    [POOL_WAIT_NS] = "wait_seconds",
    [POOL_TIMEOUTS] = "timeouts",
    [POOL_OPENED] = "opened",
    [POOL_CLOSED] = "closed",
    [POOL_OPEN_FAILURES] = "open_failures",
    [POOL_CHECK_FAILURES] = "failed",
    [POOL_FORGOTTEN] = "forgotten",
    [POOL_OPEN_TRANSACTIONS] = "open_transactions",
};

uint32_t async_property(const zend_class_entry *class_type, const char *name) {
    const zend_property_info *property = zend_hash_str_find_ptr(&class_type->properties_info, name, strlen(name));
    ZEND_ASSERT(property != NULL && (property->flags & ZEND_ACC_STATIC) == 0);
    return property->offset;
}

static uint64_t number(const zval *value) {
    ZVAL_DEREF(value);
    switch (Z_TYPE_P(value)) {
    case IS_LONG:
        return Z_LVAL_P(value) > 0 ? (uint64_t)Z_LVAL_P(value) : 0;
    case IS_DOUBLE:
        return Z_DVAL_P(value) > 0 && Z_DVAL_P(value) < 1e9 ? (uint64_t)(Z_DVAL_P(value) * 1e9) : 0;
    case IS_ARRAY:
        return zend_hash_num_elements(Z_ARRVAL_P(value));
    default:
        return 0;
    }
}

static void add_counted(uint64_t *sums, const zend_object *numbers) {
    for (unsigned i = 0; i < POOL_NUMBERS; i++) {
        if (counter_names[i] == NULL) {
            continue;
        }
        uint64_t counted = number(OBJ_PROP(numbers, at.counters[i]));
        sums[i] = i == POOL_WAIT_MAX_NS ? MAX(sums[i], counted) : sums[i] + counted;
    }
}

static void add_present(uint64_t *sums, const zend_object *pool) {
    sums[POOL_LIMIT] += number(OBJ_PROP(pool, at.max));
    sums[POOL_OPEN] += number(OBJ_PROP(pool, at.open));
    sums[POOL_IDLE] += number(OBJ_PROP(pool, at.idle));
    sums[POOL_LENT] += number(OBJ_PROP(pool, at.lent));
    const zval *line = OBJ_PROP(pool, at.line);
    if (Z_TYPE_P(line) == IS_OBJECT) {
        sums[POOL_WAITING] += number(OBJ_PROP(Z_OBJ_P(line), at.waiting));
    }
}

void async_pools_publish(void) {
    if (slots_used == 0 || shim.script_child) {
        return;
    }
    uint64_t sums[POOL_SLOTS][POOL_NUMBERS];
    for (unsigned i = 0; i < slots_used; i++) {
        memcpy(sums[i], slots[i].past, sizeof sums[i]);
    }
    const watched_pool *entry;
    ZEND_HASH_FOREACH_PTR(&watched, entry) {
        add_present(sums[entry->slot], entry->pool);
        add_counted(sums[entry->slot], entry->numbers);
    }
    ZEND_HASH_FOREACH_END();
    for (unsigned i = 0; i < slots_used; i++) {
        howdah_rs_pool_numbers(i, sums[i]);
    }
}

/* A pool is gone, and with it the connections that it had. */
static void forget(zval *value) {
    watched_pool *entry = Z_PTR_P(value);
    uint64_t *past = slots[entry->slot].past;
    add_counted(past, entry->numbers);
    past[POOL_CLOSED] += number(OBJ_PROP(entry->numbers, at.counters[POOL_OPENED])) -
                         number(OBJ_PROP(entry->numbers, at.counters[POOL_CLOSED]));
    slots[entry->slot].pools--;
    OBJ_RELEASE(entry->numbers);
    pefree(entry, 1);
}

static int find_slot(const char *name, size_t length) {
    length = MIN(length, POOL_NAME_LEN);
    for (unsigned i = 0; i < slots_used; i++) {
        if (slots[i].length == length && memcmp(slots[i].name, name, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int take_slot(const zend_string *name) {
    int found = find_slot(ZSTR_VAL(name), ZSTR_LEN(name));
    if (found < 0 && slots_used < POOL_SLOTS && ZSTR_LEN(name) > 0) {
        found = (int)slots_used++;
        slots[found].length = MIN(ZSTR_LEN(name), POOL_NAME_LEN);
        memcpy(slots[found].name, ZSTR_VAL(name), slots[found].length);
        howdah_rs_pool_name((unsigned)found, slots[found].name, slots[found].length);
    }
    return found;
}

static void learn_layout(const zend_object *pool, const zend_object *numbers) {
    at.max = async_property(pool->ce, "max");
    at.open = async_property(pool->ce, "open");
    at.idle = async_property(pool->ce, "idle");
    at.lent = async_property(pool->ce, "lent");
    at.line = async_property(pool->ce, "line");
    at.waiting = async_property(Z_OBJCE_P(OBJ_PROP(pool, at.line)), "count");
    for (unsigned i = 0; i < POOL_NUMBERS; i++) {
        if (counter_names[i] != NULL) {
            at.counters[i] = async_property(numbers->ce, counter_names[i]);
        }
    }
    zend_hash_init(&watched, 8, NULL, forget, 1);
}

/* --- Howdah\Internal\PoolReport --- */

/* A pool whose numbers shall be told. */
PHP_METHOD(Howdah_Internal_PoolReport, add) {
    zend_object *pool, *numbers;
    zend_string *name;
    ZEND_PARSE_PARAMETERS_START(3, 3)
    Z_PARAM_OBJ(pool)
    Z_PARAM_OBJ(numbers)
    Z_PARAM_STR(name)
    ZEND_PARSE_PARAMETERS_END();
    int slot = shim.script_child ? -1 : take_slot(name);
    if (slot < 0) {
        return;
    }
    if (watched.nTableSize == 0) {
        learn_layout(pool, numbers);
    }
    watched_pool *entry = pemalloc(sizeof *entry, 1);
    *entry = (watched_pool){.pool = pool, .numbers = numbers, .slot = (unsigned)slot};
    if (zend_weakrefs_hash_add_ptr(&watched, pool, entry) == NULL) {
        pefree(entry, 1);
        return;
    }
    GC_ADDREF(numbers);
    slots[slot].pools++;
}

/* The name for a pool that was given none: of its kind, and not another pool's. */
PHP_METHOD(Howdah_Internal_PoolReport, freeName) {
    zend_string *kind;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(kind)
    ZEND_PARSE_PARAMETERS_END();
    int slot = find_slot(ZSTR_VAL(kind), ZSTR_LEN(kind));
    if (slot < 0 || slots[slot].pools == 0) {
        RETURN_STR_COPY(kind);
    }
    for (unsigned i = 2;; i++) {
        /* Cut so that the number is never cut off. */
        zend_string *numbered = zend_strpprintf(0, "%.*s-%u", POOL_NAME_LEN - 11, ZSTR_VAL(kind), i);
        slot = find_slot(ZSTR_VAL(numbered), ZSTR_LEN(numbered));
        if (slot < 0 || slots[slot].pools == 0) {
            RETURN_STR(numbered);
        }
        zend_string_release(numbered);
    }
}

/* Whether a transaction is open on a mysqli connection, as the server said in its last answer. NULL: not known. */
PHP_METHOD(Howdah_Internal_PoolReport, mysqliInTransaction) {
    zend_object *object;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_OBJ(object)
    ZEND_PARSE_PARAMETERS_END();
#if SHIM_WITH_MYSQLI
    const zend_class_entry *mysqli = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("mysqli"));
    if (mysqli == NULL || !instanceof_function(object->ce, mysqli)) {
        RETURN_NULL();
    }
    const MYSQLI_RESOURCE *resource = php_mysqli_fetch_object(object)->ptr;
    const MY_MYSQL *link = resource != NULL && resource->status == MYSQLI_STATUS_VALID ? resource->ptr : NULL;
    if (link == NULL || link->mysql == NULL) {
        RETURN_NULL();
    }
    RETURN_BOOL((mysqlnd_get_server_status(link->mysql) & SERVER_STATUS_IN_TRANS) != 0);
#endif
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_add, 0, 0, 3)
ZEND_ARG_TYPE_INFO(0, pool, IS_OBJECT, 0)
ZEND_ARG_TYPE_INFO(0, numbers, IS_OBJECT, 0)
ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_kind, 0, 0, 1)
ZEND_ARG_TYPE_INFO(0, kind, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_connection, 0, 0, 1)
ZEND_ARG_TYPE_INFO(0, connection, IS_OBJECT, 0)
ZEND_END_ARG_INFO()

/* clang-format off */
static const zend_function_entry methods[] = {
    PHP_ME(Howdah_Internal_PoolReport, add, arginfo_add, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_ME(Howdah_Internal_PoolReport, freeName, arginfo_kind, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_ME(Howdah_Internal_PoolReport, mysqliInTransaction, arginfo_connection, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_FE_END
};
/* clang-format on */

void async_pools_class_startup(void) {
    zend_class_entry entry;
    INIT_NS_CLASS_ENTRY(entry, "Howdah\\Internal", "PoolReport", methods);
    zend_class_entry *report = zend_register_internal_class(&entry);
    report->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES;
}
