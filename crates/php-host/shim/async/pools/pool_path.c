/* The way of almost all connections of the library's pools (library/Pool.php): taken when one is unused, given back
 * with nothing to undo while nobody waits in line, and statements that were seen before. Each says so when it is not
 * that simple, before anything was changed; then the library does it in PHP, where all of it is written. */
#include "async/pools/pool_path.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/coroutine_class.h"
#include "async/core/loop.h"
#include "async/core/request.h"
#include "async/pools/pools.h"
#include "async/tools/stacks.h"
#include "sql/session_sql.h"

static zend_class_entry *pool_class, *entry_class, *state_class;

/* Where properties lie in their objects. */
static struct { uint32_t closed, idle, lent, numbers, min_idle, check_after, lifetime, driver, line, keeper; } pool_at;
static struct { uint32_t connection, state, born, seen, holder, taken; } entry_at;
static struct { uint32_t lent, request, begun, changed, doubtful, attributes; } state_at;
static uint32_t numbers_taken, line_first;

/* Coroutine::$data['connections'] */
static zend_string *connections_name;

static void learn(const zend_object *pool, const zend_object *entry) {
    const zend_class_entry *type = pool->ce;
    pool_at.closed = async_property(type, "closed");
    pool_at.idle = async_property(type, "idle");
    pool_at.lent = async_property(type, "lent");
    pool_at.numbers = async_property(type, "numbers");
    pool_at.min_idle = async_property(type, "minIdle");
    pool_at.check_after = async_property(type, "checkAfter");
    pool_at.lifetime = async_property(type, "lifetime");
    pool_at.driver = async_property(type, "driver");
    pool_at.line = async_property(type, "line");
    pool_at.keeper = async_property(type, "keeper");
    numbers_taken = async_property(Z_OBJCE_P(OBJ_PROP(pool, pool_at.numbers)), "taken");
    line_first = async_property(Z_OBJCE_P(OBJ_PROP(pool, pool_at.line)), "first");
    entry_class = entry->ce;
    entry_at.connection = async_property(entry_class, "connection");
    entry_at.state = async_property(entry_class, "state");
    entry_at.born = async_property(entry_class, "born");
    entry_at.seen = async_property(entry_class, "seen");
    entry_at.holder = async_property(entry_class, "holder");
    entry_at.taken = async_property(entry_class, "taken");
    state_class = Z_OBJCE_P(OBJ_PROP(entry, entry_at.state));
    state_at.lent = async_property(state_class, "lent");
    state_at.request = async_property(state_class, "request");
    state_at.begun = async_property(state_class, "begun");
    state_at.changed = async_property(state_class, "changed");
    state_at.doubtful = async_property(state_class, "doubtful");
    state_at.attributes = async_property(state_class, "attributes");
    connections_name = zend_string_init_interned(ZEND_STRL("connections"), 1);
    pool_class = pool->ce;
}

/* By the clock of PHP's hrtime(), in seconds as the library counts them. */
static double now(void) {
    return (double)async_about_now() / 1e9;
}

/* Puts a value, which it takes over, in the place of another one. */
static void put(zval *at, zval *value) {
    zval old;
    ZVAL_COPY_VALUE(&old, at);
    ZVAL_COPY_VALUE(at, value);
    zval_ptr_dtor(&old);
}

static void put_null(zval *at) {
    zval null;
    ZVAL_NULL(&null);
    put(at, &null);
}

/* The array in a property, nobody else's; NULL: a reference, or something else. */
static HashTable *own_array(zval *at) {
    if (Z_TYPE_P(at) != IS_ARRAY) {
        return NULL;
    }
    SEPARATE_ARRAY(at);
    return Z_ARRVAL_P(at);
}

/* The connections of a coroutine; NULL: it has none. */
static HashTable *connections_of(zend_object *coroutine_object, bool make) {
    zval *data = OBJ_PROP_NUM(coroutine_object, 0);
    HashTable *all = own_array(data);
    zval *found = all != NULL ? zend_hash_find_known_hash(all, connections_name) : NULL;
    if (found == NULL && all != NULL && make) {
        zval fresh;
        array_init_size(&fresh, 2);
        found = zend_hash_add_new(all, connections_name, &fresh);
    }
    return found != NULL ? own_array(found) : NULL;
}

/* Whether a connection need not be looked at, as it was seen alive a short time ago. */
static bool is_fresh(const zend_object *pool, const zend_object *entry) {
    double check_after = Z_DVAL_P(OBJ_PROP(pool, pool_at.check_after));
    /* The clock may be some milliseconds late. */
    return check_after > 0 && Z_DVAL_P(OBJ_PROP(entry, entry_at.seen)) + check_after > now();
}

/* The unused connection that was used last, if it need not be looked at before it is used again. */
static zend_object *unused(zend_object *pool) {
    uint32_t place = pool_class == pool->ce ? pool_at.idle : async_property(pool->ce, "idle");
    const zval *idle = OBJ_PROP(pool, place);
    if (Z_TYPE_P(idle) != IS_ARRAY || zend_hash_num_elements(Z_ARRVAL_P(idle)) == 0) {
        return NULL;
    }
    const zval *last = zend_hash_index_find(Z_ARRVAL_P(idle), zend_hash_num_elements(Z_ARRVAL_P(idle)) - 1);
    if (last == NULL || Z_TYPE_P(last) != IS_OBJECT) {
        return NULL;
    }
    zend_object *entry = Z_OBJ_P(last);
    if (pool_class != pool->ce) {
        learn(pool, entry);
    }
    if (Z_TYPE_P(OBJ_PROP(pool, pool_at.closed)) != IS_FALSE || Z_LVAL_P(OBJ_PROP(pool, pool_at.min_idle)) > 0 ||
        !is_fresh(pool, entry)) {
        return NULL;
    }
    return entry;
}

/* ?object take(Pool $pool): what Pool::get() returns; NULL: it is not that simple. */
PHP_METHOD(Howdah_Internal_PoolPath, take) {
    zend_object *pool;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_OBJ(pool)
    ZEND_PARSE_PARAMETERS_END();
    coroutine *self = coroutine_current;
    zend_object *entry = self != NULL ? unused(pool) : NULL;
    if (entry == NULL) {
        RETURN_NULL();
    }
    zval holder, value;
    ZVAL_OBJ(&holder, coroutine_object_of(self));
    HashTable *idle = own_array(OBJ_PROP(pool, pool_at.idle));
    HashTable *lent = own_array(OBJ_PROP(pool, pool_at.lent));
    HashTable *connections = connections_of(Z_OBJ(holder), true);
    if (lent == NULL || connections == NULL) {
        zval_ptr_dtor(&holder);
        RETURN_NULL();
    }
    GC_ADDREF(entry);
    zend_hash_index_del(idle, zend_hash_num_elements(idle) - 1);
    Z_LVAL_P(OBJ_PROP(Z_OBJ_P(OBJ_PROP(pool, pool_at.numbers)), numbers_taken))++;
    zend_object *state = Z_OBJ_P(OBJ_PROP(entry, entry_at.state));
    ZVAL_TRUE(OBJ_PROP(state, state_at.lent));
    if (self->request != NULL) {
        ZVAL_OBJ(&value, coroutine_object_of(self->request->main));
        put(OBJ_PROP(state, state_at.request), &value);
    } else {
        put_null(OBJ_PROP(state, state_at.request));
    }
    put(OBJ_PROP(entry, entry_at.holder), &holder);
    ZVAL_STR(&value, async_here());
    put(OBJ_PROP(entry, entry_at.taken), &value);
    const zval *connection = OBJ_PROP(entry, entry_at.connection);
    zend_ulong key = Z_OBJ_HANDLE_P(connection);
    ZVAL_OBJ_COPY(&value, entry);
    zend_hash_index_update(lent, key, &value);
    /* It has the reference that the unused ones had. */
    ZVAL_OBJ(&value, entry);
    zend_hash_index_update(connections, key, &value);
    RETURN_COPY(connection);
}

/* Whether nothing is to be undone; what fails, or is another coroutine's at the moment, is not simple. */
static bool is_as_new(const zend_object *pool, zend_object *state, zval *connection) {
    static zend_class_entry *driver_class, *pdo_class;
    static zend_function *is_as_new_function, *in_transaction;
    static uint32_t buffered;
    zend_object *driver = Z_OBJ_P(OBJ_PROP(pool, pool_at.driver));
    zval answer;
    ZVAL_FALSE(&answer);
    if (zend_string_equals_literal(driver->ce->name, "Howdah\\Internal\\PdoDriver")) {
        if (pdo_class != Z_OBJCE_P(connection)) {
            pdo_class = Z_OBJCE_P(connection);
            buffered = async_property(pdo_class, "buffered");
            in_transaction = zend_hash_str_find_ptr(&pdo_class->function_table, ZEND_STRL("intransaction"));
        }
        if (Z_TYPE_P(OBJ_PROP(state, state_at.changed)) != IS_FALSE ||
            zend_hash_num_elements(Z_ARRVAL_P(OBJ_PROP(state, state_at.attributes))) > 0 ||
            Z_TYPE_P(OBJ_PROP(Z_OBJ_P(connection), buffered)) != IS_TRUE) {
            return false;
        }
        zend_call_known_instance_method_with_0_params(in_transaction, Z_OBJ_P(connection), &answer);
        if (EG(exception) == NULL) {
            return Z_TYPE(answer) == IS_FALSE;
        }
    } else {
        if (driver_class != driver->ce) {
            driver_class = driver->ce;
            is_as_new_function = zend_hash_str_find_ptr(&driver_class->function_table, ZEND_STRL("isasnew"));
        }
        zval arguments[2];
        ZVAL_COPY_VALUE(&arguments[0], connection);
        ZVAL_OBJ(&arguments[1], state);
        zend_call_known_function(is_as_new_function, driver, driver_class, &answer, 2, arguments, NULL);
        if (EG(exception) == NULL) {
            return Z_TYPE(answer) == IS_TRUE;
        }
    }
    zend_clear_exception();
    return false;
}

/* bool giveBack(Pool $pool, object $connection): false: it is not that simple. */
PHP_METHOD(Howdah_Internal_PoolPath, giveBack) {
    zend_object *pool;
    zval *connection;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_OBJ(pool)
    Z_PARAM_OBJECT(connection)
    ZEND_PARSE_PARAMETERS_END();
    RETVAL_FALSE;
    zend_ulong key = Z_OBJ_HANDLE_P(connection);
    HashTable *lent = pool->ce == pool_class ? own_array(OBJ_PROP(pool, pool_at.lent)) : NULL;
    const zval *found = lent != NULL ? zend_hash_index_find(lent, key) : NULL;
    if (found == NULL || Z_OBJCE_P(found) != entry_class) {
        return;
    }
    zend_object *entry = Z_OBJ_P(found);
    zend_object *state = Z_OBJ_P(OBJ_PROP(entry, entry_at.state));
    double at = now();
    if (Z_TYPE_P(OBJ_PROP(pool, pool_at.closed)) != IS_FALSE ||
        Z_TYPE_P(OBJ_PROP(state, state_at.doubtful)) != IS_FALSE ||
        Z_TYPE_P(OBJ_PROP(entry, entry_at.holder)) != IS_OBJECT ||
        Z_DVAL_P(OBJ_PROP(entry, entry_at.born)) + Z_DVAL_P(OBJ_PROP(pool, pool_at.lifetime)) <= at ||
        Z_TYPE_P(OBJ_PROP(Z_OBJ_P(OBJ_PROP(pool, pool_at.line)), line_first)) != IS_NULL ||
        Z_TYPE_P(OBJ_PROP(pool, pool_at.keeper)) != IS_OBJECT || !is_as_new(pool, state, connection)) {
        return;
    }
    HashTable *idle = own_array(OBJ_PROP(pool, pool_at.idle));
    lent = own_array(OBJ_PROP(pool, pool_at.lent));
    if (idle == NULL || lent == NULL) {
        return;
    }
    GC_ADDREF(entry);
    zend_hash_index_del(lent, key);
    HashTable *connections = connections_of(Z_OBJ_P(OBJ_PROP(entry, entry_at.holder)), false);
    if (connections != NULL) {
        zend_hash_index_del(connections, key);
    }
    ZVAL_FALSE(OBJ_PROP(state, state_at.lent));
    put_null(OBJ_PROP(state, state_at.request));
    put_null(OBJ_PROP(state, state_at.begun));
    ZVAL_DOUBLE(OBJ_PROP(entry, entry_at.seen), at);
    put_null(OBJ_PROP(entry, entry_at.holder));
    zval value;
    ZVAL_OBJ(&value, entry);
    zend_hash_index_update(idle, zend_hash_num_elements(idle), &value);
    RETVAL_TRUE;
}

/* Whether a statement may leave something behind in its session. Drivers are named as PDO names them; of others nothing
 * is known, and nothing is assumed. */
static bool may_change(const zend_string *driver, const zend_string *sql) {
    static const struct {
        const char *name;
        session_dialect dialect;
    } dialects[] = {{"mysql", SESSION_MYSQL}, {"pgsql", SESSION_PGSQL}, {"sqlite", SESSION_SQLITE}};
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        if (zend_string_equals_cstr(driver, dialects[i].name, strlen(dialects[i].name))) {
            return session_sql_change(dialects[i].dialect, ZSTR_VAL(sql), ZSTR_LEN(sql)) != SESSION_SAME;
        }
    }
    return false;
}

/* Whether the connection is the current request's, and no other's. */
static bool is_own(const zend_object *state) {
    const zval *request = OBJ_PROP(state, state_at.request);
    const coroutine *main =
        coroutine_current != NULL && coroutine_current->request != NULL ? coroutine_current->request->main : NULL;
    return Z_TYPE_P(OBJ_PROP(state, state_at.lent)) == IS_TRUE && main != NULL && Z_TYPE_P(request) == IS_OBJECT &&
           coroutine_is(main, Z_OBJ_P(request));
}

/* bool knows(ConnectionState $state, string $driver, string $sql): the connection is the current request's, and the
 * statement changes nothing in its session. */
PHP_METHOD(Howdah_Internal_PoolPath, knows) {
    zend_object *state;
    zend_string *driver, *sql;
    ZEND_PARSE_PARAMETERS_START(3, 3)
    Z_PARAM_OBJ(state)
    Z_PARAM_STR(driver)
    Z_PARAM_STR(sql)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_BOOL(state->ce == state_class && is_own(state) && !may_change(driver, sql));
}

/* bool mayChange(string $driver, string $sql) */
PHP_METHOD(Howdah_Internal_PoolPath, mayChange) {
    zend_string *driver, *sql;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(driver)
    Z_PARAM_STR(sql)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_BOOL(may_change(driver, sql));
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_take, 0, 0, 1)
ZEND_ARG_TYPE_INFO(0, pool, IS_OBJECT, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_give_back, 0, 0, 2)
ZEND_ARG_TYPE_INFO(0, pool, IS_OBJECT, 0)
ZEND_ARG_TYPE_INFO(0, connection, IS_OBJECT, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_knows, 0, 0, 3)
ZEND_ARG_TYPE_INFO(0, state, IS_OBJECT, 0)
ZEND_ARG_TYPE_INFO(0, driver, IS_STRING, 0)
ZEND_ARG_TYPE_INFO(0, sql, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_may_change, 0, 0, 2)
ZEND_ARG_TYPE_INFO(0, driver, IS_STRING, 0)
ZEND_ARG_TYPE_INFO(0, sql, IS_STRING, 0)
ZEND_END_ARG_INFO()

/* clang-format off */
static const zend_function_entry methods[] = {
    PHP_ME(Howdah_Internal_PoolPath, take, arginfo_take, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_ME(Howdah_Internal_PoolPath, giveBack, arginfo_give_back, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_ME(Howdah_Internal_PoolPath, knows, arginfo_knows, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_ME(Howdah_Internal_PoolPath, mayChange, arginfo_may_change, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_FE_END
};
/* clang-format on */

void async_pool_path_class_startup(void) {
    zend_class_entry entry;
    INIT_NS_CLASS_ENTRY(entry, "Howdah\\Internal", "PoolPath", methods);
    zend_class_entry *path = zend_register_internal_class(&entry);
    path->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES;
}
