/* Howdah\Internal\Connections: the connections of a pool, which of them are idle, and which coroutines have the others.
 * This file handles the path of almost every query: a connection is taken, and returned with nothing to undo.
 * Howdah\Pool does everything that may wait. */
#include "async/pools/pools.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/coroutine_class.h"
#include "async/core/throw.h"
#include "async/core/timers.h"
#include "async/pools/connection.h"
#include "async/pools/numbers.h"
#include "async/tools/stacks.h"

#include <zend_closures.h>

static zend_class_entry *class_entry;
static zend_object_handlers handlers;

static connection_pool *pool_of(zend_object *object) {
    return (connection_pool *)((char *)object - XtOffsetOf(connection_pool, std));
}

static zend_object *create(zend_class_entry *type) {
    connection_pool *self = zend_object_alloc(sizeof *self, type);
    memset(self, 0, XtOffsetOf(connection_pool, std));
    self->slot = -1;
    ZVAL_UNDEF(&self->forget);
    zend_hash_init(&self->in_use, 8, NULL, NULL, 0);
    zend_object_std_init(&self->std, type);
    object_properties_init(&self->std, type);
    self->std.handlers = &handlers;
    return &self->std;
}

/* Seconds by the clock of PHP's hrtime(), which may be some milliseconds late here. */
static double coarse_time(void) {
    return (double)async_about_now() / 1e9;
}

static double seconds(pooled *entry, uint32_t which) {
    return zval_get_double(pooled_property(entry, which));
}

static void count(connection_pool *self, pool_number which, zend_long more) {
    zval *number = pool_number_of(self, which);
    ZVAL_LONG(number, zval_get_long(number) + more);
}

static uint32_t idle_count(connection_pool *self) {
    return (uint32_t)Z_LVAL_P(pool_number_of(self, POOL_IDLE));
}

/* --- leases --- */

static void link_to_holder(pooled *entry, coroutine *holder) {
    entry->holder = holder;
    entry->previous = NULL;
    entry->next = holder->connections;
    if (entry->next != NULL) {
        entry->next->previous = entry;
    }
    holder->connections = entry;
}

static void unlink_from_holder(pooled *entry) {
    if (entry->holder == NULL) {
        return;
    }
    if (entry->previous != NULL) {
        entry->previous->next = entry->next;
    } else {
        entry->holder->connections = entry->next;
    }
    if (entry->next != NULL) {
        entry->next->previous = entry->previous;
    }
    entry->holder = NULL;
    entry->next = entry->previous = NULL;
}

static pooled *in_use(connection_pool *self, const zend_object *connection) {
    return zend_hash_index_find_ptr(&self->in_use, connection->handle);
}

/* Removes the connection's holder; the caller gets the holder's reference. */
static void end_lease(connection_pool *self, pooled *entry) {
    zend_hash_index_del(&self->in_use, Z_OBJ_HANDLE_P(pooled_property(entry, POOLED_CONNECTION)));
    unlink_from_holder(entry);
    entry->pool = NULL;
    count(self, POOL_IN_USE, -1);
}

/* Leases the connection to the running coroutine; consumes the caller's reference. */
static void lease(connection_pool *self, pooled *entry) {
    const zend_object *connection = Z_OBJ_P(pooled_property(entry, POOLED_CONNECTION));
    pooled *same = in_use(self, connection);
    if (same != NULL) {
        /* The application has created a pool that always returns the same object. */
        end_lease(self, same);
        OBJ_RELEASE(&same->std);
    }
    connection_state_lend(Z_OBJ_P(pooled_property(entry, POOLED_STATE)));
    zval *taken = pooled_property(entry, POOLED_TAKEN);
    zval_ptr_dtor(taken);
    ZVAL_STR(taken, async_here());
    entry->pool = self;
    link_to_holder(entry, coroutine_current);
    zend_hash_index_add_ptr(&self->in_use, connection->handle, entry);
    count(self, POOL_IN_USE, 1);
}

/* Consumes the caller's reference. */
static void push_idle(connection_pool *self, pooled *entry) {
    uint32_t idle = idle_count(self);
    if (idle == self->idle_size) {
        self->idle_size = idle == 0 ? 4 : idle * 2;
        self->idle = safe_erealloc(self->idle, self->idle_size, sizeof *self->idle, 0);
    }
    self->idle[idle] = entry;
    count(self, POOL_IDLE, 1);
}

static pooled *pop_idle(connection_pool *self) {
    count(self, POOL_IDLE, -1);
    return self->idle[idle_count(self)];
}

static void destroy(zend_object *object) {
    connection_pool *self = pool_of(object);
    async_pool_numbers_remove(self);
    pooled *entry;
    ZEND_HASH_FOREACH_PTR(&self->in_use, entry) {
        unlink_from_holder(entry);
        entry->pool = NULL;
        OBJ_RELEASE(&entry->std);
    }
    ZEND_HASH_FOREACH_END();
    zend_hash_destroy(&self->in_use);
    for (uint32_t i = 0, idle = idle_count(self); i < idle; i++) {
        OBJ_RELEASE(&self->idle[i]->std);
    }
    if (self->idle != NULL) {
        efree(self->idle);
    }
    zval_ptr_dtor(&self->forget);
    zend_object_std_dtor(object);
}

void async_pools_come_back(coroutine *holder) {
    while (holder->connections != NULL) {
        pooled *entry = holder->connections;
        zval function, arguments[2], result;
        ZVAL_COPY(&function, &entry->pool->forget);
        end_lease(entry->pool, entry);
        ZVAL_OBJ(&arguments[0], &entry->std);
        ZVAL_BOOL(&arguments[1], holder->cancelled);
        ZVAL_UNDEF(&result);
        call_user_function(NULL, NULL, &function, &result, 2, arguments);
        zval_ptr_dtor(&result);
        zval_ptr_dtor(&arguments[0]);
        zval_ptr_dtor(&function);
        async_exit_or_report();
    }
}

void async_pools_let_go(coroutine *holder) {
    while (holder->connections != NULL) {
        unlink_from_holder(holder->connections);
    }
}

/* --- methods --- */

#define THIS() pool_of(Z_OBJ_P(ZEND_THIS))

PHP_METHOD(Howdah_Internal_Connections, __construct) {
    zend_string *name;
    zend_long limit;
    double check_after, lifetime;
    bool look_first;
    zval *forget;
    ZEND_PARSE_PARAMETERS_START(6, 6)
    Z_PARAM_STR(name)
    Z_PARAM_LONG(limit)
    Z_PARAM_DOUBLE(check_after)
    Z_PARAM_DOUBLE(lifetime)
    Z_PARAM_BOOL(look_first)
    Z_PARAM_OBJECT_OF_CLASS(forget, zend_ce_closure)
    ZEND_PARSE_PARAMETERS_END();
    connection_pool *self = THIS();
    if (!Z_ISUNDEF(self->forget)) {
        zend_throw_error(NULL, "The pool already has its connections");
        RETURN_THROWS();
    }
    ZVAL_LONG(pool_number_of(self, POOL_LIMIT), limit);
    self->check_after = check_after;
    self->lifetime = lifetime;
    self->look_first = look_first;
    ZVAL_COPY(&self->forget, forget);
    async_pool_numbers_add(self, name);
}

/* True if a connection was known to be alive a short time ago and need not be checked. */
static bool is_fresh(const connection_pool *self, pooled *entry) {
    return self->check_after > 0 && seconds(entry, POOLED_SEEN) + self->check_after > coarse_time();
}

/* ?object take(): lends the connection that was used last. NULL: there is none, or PHP code has to check first. */
PHP_METHOD(Howdah_Internal_Connections, take) {
    ZEND_PARSE_PARAMETERS_NONE();
    connection_pool *self = THIS();
    uint32_t idle = idle_count(self);
    if (idle == 0 || coroutine_current == NULL || self->closed || self->look_first ||
        !is_fresh(self, self->idle[idle - 1])) {
        RETURN_NULL();
    }
    pooled *entry = pop_idle(self);
    count(self, POOL_ACQUIRED, 1);
    lease(self, entry);
    RETURN_COPY(pooled_property(entry, POOLED_CONNECTION));
}

/* object lend(PooledConnection $entry): its connection, for the running coroutine. */
PHP_METHOD(Howdah_Internal_Connections, lend) {
    zend_object *object;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_OBJ(object)
    ZEND_PARSE_PARAMETERS_END();
    pooled *entry = is_pooled(object) ? pooled_of(object) : NULL;
    if (entry == NULL || entry->pool != NULL || Z_TYPE_P(pooled_property(entry, POOLED_CONNECTION)) != IS_OBJECT ||
        coroutine_current == NULL) {
        zend_throw_error(NULL, "This connection cannot be lent");
        RETURN_THROWS();
    }
    GC_ADDREF(object);
    lease(THIS(), entry);
    RETURN_COPY(pooled_property(entry, POOLED_CONNECTION));
}

/* True if nothing has to be undone. A connection that fails, or is in use by another coroutine, is not as new. */
static bool needs_no_reset(zend_object *driver, zval *connection, zval *state) {
    static zend_class_entry *driver_class;
    static zend_function *function;
    if (driver_class != driver->ce) {
        driver_class = driver->ce;
        function = zend_hash_str_find_ptr(&driver_class->function_table, ZEND_STRL("isasnew"));
    }
    zval as_new, arguments[2];
    ZVAL_FALSE(&as_new);
    ZVAL_COPY_VALUE(&arguments[0], connection);
    ZVAL_COPY_VALUE(&arguments[1], state);
    zend_call_known_function(function, driver, driver_class, &as_new, 2, arguments, NULL);
    if (EG(exception) != NULL) {
        zend_clear_exception();
        return false;
    }
    return Z_TYPE(as_new) == IS_TRUE;
}

static bool is_idle(connection_pool *self, const zend_object *connection) {
    for (uint32_t i = 0, idle = idle_count(self); i < idle; i++) {
        if (Z_OBJ_P(pooled_property(self->idle[i], POOLED_CONNECTION)) == connection) {
            return true;
        }
    }
    return false;
}

/* ?PooledConnection giveBack(object $connection, PoolDriver $driver): NULL: it is idle again. Otherwise the connection
 * has no holder, and the caller decides about a reset (unless it is as new) and its next holder. */
PHP_METHOD(Howdah_Internal_Connections, giveBack) {
    zval *connection;
    zend_object *driver;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_OBJECT(connection)
    Z_PARAM_OBJ(driver)
    ZEND_PARSE_PARAMETERS_END();
    connection_pool *self = THIS();
    pooled *entry = in_use(self, Z_OBJ_P(connection));
    if (entry == NULL) {
        async_throw("MisuseError", is_idle(self, Z_OBJ_P(connection)) ? "The connection was returned twice"
                                                                      : "The connection is not lent by this pool");
        RETURN_THROWS();
    }
    end_lease(self, entry);
    zval *state = pooled_property(entry, POOLED_STATE);
    double now = coarse_time();
    bool as_new = !self->closed && Z_TYPE_P(OBJ_PROP_NUM(Z_OBJ_P(state), STATE_DOUBTFUL)) == IS_FALSE &&
                  seconds(entry, POOLED_BORN) + self->lifetime > now && needs_no_reset(driver, connection, state);
    ZVAL_BOOL(pooled_property(entry, POOLED_AS_NEW), as_new);
    if (as_new) {
        connection_state_take_back(Z_OBJ_P(state));
        ZVAL_DOUBLE(pooled_property(entry, POOLED_SEEN), now);
        if (self->kept && zval_get_long(pool_number_of(self, POOL_WAITING)) == 0) {
            push_idle(self, entry);
            RETURN_NULL();
        }
    }
    RETURN_OBJ(&entry->std);
}

/* void doubt(object $connection): a call has failed; check the connection when it is returned. */
PHP_METHOD(Howdah_Internal_Connections, doubt) {
    zend_object *connection;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_OBJ(connection)
    ZEND_PARSE_PARAMETERS_END();
    pooled *entry = in_use(THIS(), connection);
    if (entry != NULL) {
        ZVAL_TRUE(OBJ_PROP_NUM(Z_OBJ_P(pooled_property(entry, POOLED_STATE)), STATE_DOUBTFUL));
    }
}

/* ?object mine(): a connection of this pool that the running coroutine has. */
PHP_METHOD(Howdah_Internal_Connections, mine) {
    ZEND_PARSE_PARAMETERS_NONE();
    const connection_pool *self = THIS();
    for (pooled *entry = coroutine_current != NULL ? coroutine_current->connections : NULL; entry != NULL;
         entry = entry->next) {
        if (entry->pool == self) {
            RETURN_COPY(pooled_property(entry, POOLED_CONNECTION));
        }
    }
    RETURN_NULL();
}

/* ?PooledConnection takeIdle(): the idle one that was used last. */
PHP_METHOD(Howdah_Internal_Connections, takeIdle) {
    ZEND_PARSE_PARAMETERS_NONE();
    connection_pool *self = THIS();
    if (idle_count(self) == 0) {
        RETURN_NULL();
    }
    RETURN_OBJ(&pop_idle(self)->std);
}

/* ?PooledConnection takeExpired(float $seen, int $keep): the one idle for longest, if it was last seen before `$seen`
 * and more than `$keep` are left. */
PHP_METHOD(Howdah_Internal_Connections, takeExpired) {
    double seen;
    zend_long keep;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_DOUBLE(seen)
    Z_PARAM_LONG(keep)
    ZEND_PARSE_PARAMETERS_END();
    connection_pool *self = THIS();
    zend_long idle = idle_count(self);
    if (idle == 0 || idle <= keep || seconds(self->idle[0], POOLED_SEEN) >= seen) {
        RETURN_NULL();
    }
    pooled *oldest = self->idle[0];
    count(self, POOL_IDLE, -1);
    memmove(self->idle, self->idle + 1, (size_t)(idle - 1) * sizeof *self->idle);
    RETURN_OBJ(&oldest->std);
}

/* void addIdle(PooledConnection $entry) */
PHP_METHOD(Howdah_Internal_Connections, addIdle) {
    zend_object *object;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_OBJ(object)
    ZEND_PARSE_PARAMETERS_END();
    if (!is_pooled(object) || pooled_of(object)->pool != NULL ||
        Z_TYPE_P(pooled_property(pooled_of(object), POOLED_CONNECTION)) != IS_OBJECT) {
        zend_throw_error(NULL, "This connection cannot be kept");
        RETURN_THROWS();
    }
    GC_ADDREF(object);
    push_idle(THIS(), pooled_of(object));
}

/* void keep(bool $kept): records whether a coroutine closes expired idle connections. */
PHP_METHOD(Howdah_Internal_Connections, keep) {
    bool kept;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_BOOL(kept)
    ZEND_PARSE_PARAMETERS_END();
    THIS()->kept = kept;
}

/* void close(): from now on, connections are lent only after a check of Pool::$closed, and none is as new when it is
 * returned. */
PHP_METHOD(Howdah_Internal_Connections, close) {
    ZEND_PARSE_PARAMETERS_NONE();
    THIS()->closed = true;
}

/* static void comeBack(Coroutine $holder): returns everything that a coroutine still holds to its pools, without
 * waiting. */
PHP_METHOD(Howdah_Internal_Connections, comeBack) {
    zend_object *holder;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_OBJ(holder)
    ZEND_PARSE_PARAMETERS_END();
    coroutine *self = coroutine_of_object(holder);
    if (self != NULL) {
        async_pools_come_back(self);
    }
}

/* static string freeName(string $kind) */
PHP_METHOD(Howdah_Internal_Connections, freeName) {
    zend_string *kind;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(kind)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_STR(async_pool_free_name(kind));
}

ZEND_BEGIN_ARG_INFO_EX(arginfo_none, 0, 0, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_construct, 0, 0, 6)
ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
ZEND_ARG_TYPE_INFO(0, limit, IS_LONG, 0)
ZEND_ARG_TYPE_INFO(0, checkAfter, IS_DOUBLE, 0)
ZEND_ARG_TYPE_INFO(0, lifetime, IS_DOUBLE, 0)
ZEND_ARG_TYPE_INFO(0, lookFirst, _IS_BOOL, 0)
ZEND_ARG_OBJ_INFO(0, forget, Closure, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_object, 0, 0, 1)
ZEND_ARG_TYPE_INFO(0, object, IS_OBJECT, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_give_back, 0, 0, 2)
ZEND_ARG_TYPE_INFO(0, connection, IS_OBJECT, 0)
ZEND_ARG_TYPE_INFO(0, driver, IS_OBJECT, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_expired, 0, 0, 2)
ZEND_ARG_TYPE_INFO(0, seen, IS_DOUBLE, 0)
ZEND_ARG_TYPE_INFO(0, keep, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_bool, 0, 0, 1)
ZEND_ARG_TYPE_INFO(0, kept, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_kind, 0, 0, 1)
ZEND_ARG_TYPE_INFO(0, kind, IS_STRING, 0)
ZEND_END_ARG_INFO()

/* clang-format off */
static const zend_function_entry methods[] = {
    PHP_ME(Howdah_Internal_Connections, __construct, arginfo_construct, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, take, arginfo_none, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, lend, arginfo_object, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, giveBack, arginfo_give_back, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, doubt, arginfo_object, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, mine, arginfo_none, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, takeIdle, arginfo_none, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, takeExpired, arginfo_expired, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, addIdle, arginfo_object, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, keep, arginfo_bool, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, close, arginfo_none, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_Connections, comeBack, arginfo_object, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_ME(Howdah_Internal_Connections, freeName, arginfo_kind, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_FE_END
};
/* clang-format on */

void async_pools_class_startup(void) {
    zend_class_entry entry;
    INIT_NS_CLASS_ENTRY(entry, "Howdah\\Internal", "Connections", methods);
    class_entry = zend_register_internal_class(&entry);
    class_entry->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NOT_SERIALIZABLE | ZEND_ACC_NO_DYNAMIC_PROPERTIES;
    class_entry->create_object = create;
    for (pool_number i = 0; i < POOL_NUMBERS; i++) {
        const char *name = howdah_rs_pool_number_name(i);
        if (i == POOL_WAIT || i == POOL_WAIT_MAX) {
            zend_declare_property_double(class_entry, name, strlen(name), 0, ZEND_ACC_PUBLIC);
        } else {
            zend_declare_property_long(class_entry, name, strlen(name), 0, ZEND_ACC_PUBLIC);
        }
    }
    handlers = *zend_get_std_object_handlers();
    handlers.offset = XtOffsetOf(connection_pool, std);
    handlers.free_obj = destroy;
    handlers.clone_obj = NULL;
    async_pool_connection_startup();
}
