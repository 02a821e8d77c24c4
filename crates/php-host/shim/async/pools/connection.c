/* One connection of a pool, as two PHP objects: PooledConnection is for the pool; ConnectionState is for the
 * connection's own class and records which request may use it and what must be undone before its next use. They are
 * separate because the connection holds its state, and must not hold itself. */
#include "async/pools/connection.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/throw.h"
#include "async/core/timers.h"
#include "async/core/request.h"
#include "async/pools/pools.h"
#include "sql/session_sql.h"

#if SHIM_WITH_MYSQLI
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <ext/mysqli/php_mysqli_structs.h>
#pragma GCC diagnostic pop
#endif

typedef struct connection_state {
    bool lent;
    /* The main coroutine of the request that has it, by its number; 0: it is used outside of requests. */
    uint64_t request;
    zend_object std;
} connection_state;

static zend_class_entry *pooled_class, *state_class;
static zend_object_handlers pooled_handlers, state_handlers;

pooled *pooled_of(zend_object *object) {
    return (pooled *)((char *)object - XtOffsetOf(pooled, std));
}

bool is_pooled(const zend_object *object) {
    return object->ce == pooled_class;
}

static connection_state *state_of(zend_object *object) {
    return (connection_state *)((char *)object - XtOffsetOf(connection_state, std));
}

static zend_object *create_state(zend_class_entry *type) {
    connection_state *self = zend_object_alloc(sizeof *self, type);
    self->lent = false;
    self->request = 0;
    zend_object_std_init(&self->std, type);
    object_properties_init(&self->std, type);
    self->std.handlers = &state_handlers;
    return &self->std;
}

static zend_object *create_pooled(zend_class_entry *type) {
    pooled *self = zend_object_alloc(sizeof *self, type);
    self->pool = NULL;
    self->holder = NULL;
    self->next = self->previous = NULL;
    zend_object_std_init(&self->std, type);
    object_properties_init(&self->std, type);
    self->std.handlers = &pooled_handlers;
    ZVAL_OBJ(pooled_property(self, POOLED_STATE), create_state(state_class));
    double now = (double)async_now() / 1e9;
    ZVAL_DOUBLE(pooled_property(self, POOLED_BORN), now);
    ZVAL_DOUBLE(pooled_property(self, POOLED_SEEN), now);
    return &self->std;
}

static uint64_t current_request(void) {
    const coroutine *self = coroutine_current;
    return self != NULL && self->request != NULL ? self->request->main->id : 0;
}

void connection_state_lend(zend_object *state) {
    connection_state *self = state_of(state);
    self->lent = true;
    self->request = current_request();
}

void connection_state_take_back(zend_object *state) {
    connection_state *self = state_of(state);
    self->lent = false;
    self->request = 0;
    zval *begun = OBJ_PROP_NUM(state, STATE_BEGUN);
    zval old = *begun;
    ZVAL_NULL(begun);
    zval_ptr_dtor(&old);
}

/* --- methods of ConnectionState --- */

PHP_METHOD(Howdah_Internal_ConnectionState, lend) {
    ZEND_PARSE_PARAMETERS_NONE();
    connection_state_lend(Z_OBJ_P(ZEND_THIS));
}

/* Called after a reset: there is nothing left to undo. */
PHP_METHOD(Howdah_Internal_ConnectionState, takeBack) {
    ZEND_PARSE_PARAMETERS_NONE();
    zend_object *self = Z_OBJ_P(ZEND_THIS);
    connection_state_take_back(self);
    ZVAL_FALSE(OBJ_PROP_NUM(self, STATE_CHANGED));
    ZVAL_FALSE(OBJ_PROP_NUM(self, STATE_DOUBTFUL));
    zval *attributes = OBJ_PROP_NUM(self, STATE_ATTRIBUTES);
    zval_ptr_dtor(attributes);
    ZVAL_EMPTY_ARRAY(attributes);
}

static bool check(connection_state *self) {
    if (!self->lent) {
        async_throw("MisuseError", "The connection was used after its return to the pool");
    } else if (self->request != current_request()) {
        async_throw("MisuseError",
                    "The connection was used after its return to the pool: it belongs to another request now");
    } else {
        return true;
    }
    return false;
}

/* Throws a MisuseError if the connection is not, or no longer, the current request's. */
PHP_METHOD(Howdah_Internal_ConnectionState, check) {
    ZEND_PARSE_PARAMETERS_NONE();
    check(state_of(Z_OBJ_P(ZEND_THIS)));
}

/* True if a statement may change its session. Driver names are PDO's; any statement of another driver may: its SQL is
 * not read here, and a pool must not lend one user's session to the next. */
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
    return true;
}

/* Makes the same check before a statement, and records if the statement may change the session. */
PHP_METHOD(Howdah_Internal_ConnectionState, look) {
    zend_string *driver, *sql;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(driver)
    Z_PARAM_STR(sql)
    ZEND_PARSE_PARAMETERS_END();
    zval *changed = OBJ_PROP_NUM(Z_OBJ_P(ZEND_THIS), STATE_CHANGED);
    if (check(state_of(Z_OBJ_P(ZEND_THIS))) && Z_TYPE_P(changed) == IS_FALSE && may_change(driver, sql)) {
        ZVAL_TRUE(changed);
    }
}

/* True if a transaction is open on a mysqli connection, according to the server's last response. NULL: unknown. */
PHP_METHOD(Howdah_Internal_ConnectionState, mysqliInTransaction) {
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

/* --- the classes --- */

ZEND_BEGIN_ARG_INFO_EX(arginfo_none, 0, 0, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_look, 0, 0, 2)
ZEND_ARG_TYPE_INFO(0, driver, IS_STRING, 0)
ZEND_ARG_TYPE_INFO(0, sql, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_connection, 0, 0, 1)
ZEND_ARG_TYPE_INFO(0, connection, IS_OBJECT, 0)
ZEND_END_ARG_INFO()

/* clang-format off */
static const zend_function_entry state_methods[] = {
    PHP_ME(Howdah_Internal_ConnectionState, lend, arginfo_none, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_ConnectionState, takeBack, arginfo_none, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_ConnectionState, check, arginfo_none, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_ConnectionState, look, arginfo_look, ZEND_ACC_PUBLIC)
    PHP_ME(Howdah_Internal_ConnectionState, mysqliInTransaction, arginfo_connection, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_FE_END
};
/* clang-format on */

static zend_class_entry *register_class(zend_class_entry *entry, zend_object *(*create)(zend_class_entry *),
                                        zend_object_handlers *handlers, int offset) {
    zend_class_entry *type = zend_register_internal_class(entry);
    type->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NOT_SERIALIZABLE | ZEND_ACC_NO_DYNAMIC_PROPERTIES;
    type->create_object = create;
    *handlers = *zend_get_std_object_handlers();
    handlers->offset = offset;
    handlers->clone_obj = NULL;
    return type;
}

void async_pool_connection_startup(void) {
    zend_class_entry entry;
    INIT_NS_CLASS_ENTRY(entry, "Howdah\\Internal", "ConnectionState", state_methods);
    state_class = register_class(&entry, create_state, &state_handlers, XtOffsetOf(connection_state, std));
    /* Settings of the session may have changed, or there are temporary tables, locks, variables. */
    zend_declare_property_bool(state_class, ZEND_STRL("changed"), false, ZEND_ACC_PUBLIC);
    /* A call has failed: check that the connection is alive before it is used again. */
    zend_declare_property_bool(state_class, ZEND_STRL("doubtful"), false, ZEND_ACC_PUBLIC);
    /* Place in the code where the open transaction was begun. */
    zend_declare_property_null(state_class, ZEND_STRL("begun"), ZEND_ACC_PUBLIC);
    /* The reset has rolled back an open transaction. */
    zend_declare_property_bool(state_class, ZEND_STRL("rolledBack"), false, ZEND_ACC_PUBLIC);
    /* Attributes that were changed, with their former values. */
    zval empty;
    ZVAL_EMPTY_ARRAY(&empty);
    zend_declare_property(state_class, ZEND_STRL("attributes"), &empty, ZEND_ACC_PUBLIC);

    INIT_NS_CLASS_ENTRY(entry, "Howdah\\Internal", "PooledConnection", NULL);
    pooled_class = register_class(&entry, create_pooled, &pooled_handlers, XtOffsetOf(pooled, std));
    zend_declare_property_null(pooled_class, ZEND_STRL("connection"), ZEND_ACC_PUBLIC);
    zend_declare_property_null(pooled_class, ZEND_STRL("state"), ZEND_ACC_PUBLIC);
    zend_declare_property_double(pooled_class, ZEND_STRL("born"), 0, ZEND_ACC_PUBLIC);
    /* Time when it was last known to be alive. */
    zend_declare_property_double(pooled_class, ZEND_STRL("seen"), 0, ZEND_ACC_PUBLIC);
    /* Place in the code where it was taken. */
    zend_declare_property_string(pooled_class, ZEND_STRL("taken"), "", ZEND_ACC_PUBLIC);
    /* It was returned with nothing to undo. */
    zend_declare_property_bool(pooled_class, ZEND_STRL("asNew"), false, ZEND_ACC_PUBLIC);
}
