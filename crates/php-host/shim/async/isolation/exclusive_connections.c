/* One connection cannot serve two coroutines at once: their bytes would mix, and each would read the other's answers.
 * The methods of PDO, mysqli, phpredis and the like are wrapped, so that a call on an object that another coroutine is
 * using throws Howdah\ConcurrentUseError before anything is sent. The connection stays usable for the other coroutine.
 * A PDO statement counts as its connection.
 *
 * The wrapper replaces the handler in the function's entry, as any extension may do, and finds the original in the
 * entry's slot for extensions. It is installed before any script is compiled, because inheriting classes copy the
 * entries. */
#include "async/isolation/exclusive_connections.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/tools/stacks.h"

#include <string.h>
#include <zend_extensions.h>
#if SHIM_WITH_PDO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <ext/pdo/php_pdo_driver.h>
#pragma GCC diagnostic pop
#endif

static const char *const classes[] = {"pdo",           "pdostatement", "mysqli",       "mysqli_stmt",
                                      "mysqli_result", "redis",        "rediscluster", "sqlite3",
                                      "sqlite3stmt",   "memcached",    "soapclient"};
/* Functions whose first argument is the connection, by the prefix of their names. */
static const char *const prefixes[] = {"mysqli_", "pg_", "curl_exec", "curl_multi_exec", "curl_multi_select"};

/* PDO::ATTR_PERSISTENT. */
#define PDO_OPTION_PERSISTENT 12
/* STREAM_CLIENT_PERSISTENT, the fifth argument of stream_socket_client(). */
#define STREAM_OPTION_PERSISTENT 1
#define STREAM_OPTIONS 4

static int slot = -1;
static zif_handler original_construct_pdo;
static zend_class_entry *statement_class;
/* The coroutine that is inside one of an object's methods, by object handle. Handles are small numbers that are
 * reused. */
static coroutine **users;
static uint32_t users_size;

static void make_room_for(uint32_t handle) {
    uint32_t size = users_size == 0 ? 256 : users_size;
    while (size <= handle) {
        size *= 2;
    }
    users = perealloc(users, size * sizeof *users, 1);
    memset(users + users_size, 0, (size - users_size) * sizeof *users);
    users_size = size;
}

#if SHIM_WITH_PDO
static zend_object *connection_of(zend_object *object) {
    if (statement_class == NULL || !instanceof_function(object->ce, statement_class)) {
        return object;
    }
    const pdo_stmt_t *statement = php_pdo_stmt_fetch_object(object);
    zend_object *connection = SHIM_PDO_CONNECTION(statement);
    return connection != NULL ? connection : object;
}
#else
static zend_object *connection_of(zend_object *object) {
    return object;
}
#endif

static zend_object *subject_of(zend_execute_data *execute_data) {
    if (Z_TYPE(EX(This)) == IS_OBJECT) {
        return connection_of(Z_OBJ(EX(This)));
    }
    zval *first = ZEND_CALL_NUM_ARGS(execute_data) > 0 ? ZEND_CALL_VAR_NUM(execute_data, 0) : NULL;
    return first != NULL && Z_TYPE_P(first) == IS_OBJECT ? connection_of(Z_OBJ_P(first)) : NULL;
}

typedef union handler {
    zif_handler function;
    void *pointer;
} handler;

zif_handler async_wrapped(const zend_execute_data *execute_data) {
    return ((handler){.pointer = EX(func)->internal_function.reserved[slot]}).function;
}

void async_wrap(zend_function *function, zif_handler wrapper) {
    zend_internal_function *wrapped = &function->internal_function;
    if (slot >= 0 && function->type == ZEND_INTERNAL_FUNCTION && wrapped->reserved[slot] == NULL) {
        wrapped->reserved[slot] = ((handler){.function = wrapped->handler}).pointer;
        wrapped->handler = wrapper;
    }
}

static void refuse(const coroutine *user, const zend_object *subject) {
    char message[256];
    (snprintf)(message, sizeof message,
               "Another coroutine (%llu) is using this %.80s: give each coroutine its own connection, for example "
               "with Howdah\\Pool",
               (unsigned long long)user->id, ZSTR_VAL(subject->ce->name));
    async_refuse_concurrent_use(message, user);
}

static ZEND_NAMED_FUNCTION(call_alone) {
    zif_handler original = async_wrapped(execute_data);
    zend_object *subject = coroutine_current != NULL ? subject_of(execute_data) : NULL;
    if (subject == NULL) {
        original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
        return;
    }
    uint32_t handle = subject->handle;
    if (handle >= users_size) {
        make_room_for(handle);
    }
    coroutine *user = users[handle];
    if (user == coroutine_current) {
        /* For a callback that the method calls. */
        original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
        return;
    }
    if (user != NULL) {
        refuse(user, subject);
        RETURN_THROWS();
    }
    users[handle] = coroutine_current;
    original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    users[handle] = NULL;
}

void async_exclusive_forget(const coroutine *self) {
    for (uint32_t handle = 0; handle < users_size; handle++) {
        if (users[handle] == self) {
            users[handle] = NULL;
        }
    }
}

/* PDO returns the same persistent connection for the same arguments. Coroutines get separate ones; Howdah\Pool replaces
 * persistent connections. */
static void refuse_persistence(zval *options) {
    if (options == NULL || Z_TYPE_P(options) != IS_ARRAY) {
        return;
    }
    const zval *persistent = zend_hash_index_find(Z_ARRVAL_P(options), PDO_OPTION_PERSISTENT);
    if (persistent != NULL && zend_is_true((zval *)persistent)) {
        SEPARATE_ARRAY(options);
        add_index_bool(options, PDO_OPTION_PERSISTENT, false);
    }
}

static ZEND_NAMED_FUNCTION(construct_pdo) {
    refuse_persistence(ZEND_CALL_NUM_ARGS(execute_data) > 3 ? ZEND_CALL_VAR_NUM(execute_data, 3) : NULL);
    original_construct_pdo(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void install_construct_pdo(void) {
    zend_class_entry *pdo = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("pdo"));
    if (pdo != NULL && pdo->constructor != NULL && pdo->constructor->type == ZEND_INTERNAL_FUNCTION) {
        original_construct_pdo = pdo->constructor->internal_function.handler;
        pdo->constructor->internal_function.handler = construct_pdo;
    }
}

static zend_function *function_named(const char *name) {
    return zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
}

/* Replaces a function by another one with the same arguments. */
static void replace_function(const char *name, const char *other) {
    zend_function *function = function_named(name);
    const zend_function *model = function_named(other);
    if (function != NULL && model != NULL) {
        function->internal_function.handler = model->internal_function.handler;
        function->internal_function.reserved[slot] = model->internal_function.reserved[slot];
    }
}

/* All coroutines would share a persistent stream to the same address. */
static ZEND_NAMED_FUNCTION(connect_stream) {
    zval *options =
        ZEND_CALL_NUM_ARGS(execute_data) > STREAM_OPTIONS ? ZEND_CALL_VAR_NUM(execute_data, STREAM_OPTIONS) : NULL;
    if (options != NULL && Z_TYPE_P(options) == IS_LONG) {
        Z_LVAL_P(options) &= ~(zend_long)STREAM_OPTION_PERSISTENT;
    }
    async_wrapped(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void install_streams(void) {
    replace_function("pfsockopen", "fsockopen");
    zend_function *connect = function_named("stream_socket_client");
    if (connect != NULL) {
        async_wrap(connect, connect_stream);
    }
}

bool async_exclusive_install(void) {
    slot = zend_get_resource_handle("howdah");
    if (slot < 0) {
        return false;
    }
    install_streams();
    statement_class = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("pdostatement"));
    zend_function *function;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        zend_class_entry *found = zend_hash_str_find_ptr(CG(class_table), classes[i], strlen(classes[i]));
        if (found != NULL) {
            ZEND_HASH_FOREACH_PTR(&found->function_table, function) {
                async_wrap(function, call_alone);
            }
            ZEND_HASH_FOREACH_END();
        }
    }
    install_construct_pdo();
    zend_string *name;
    ZEND_HASH_FOREACH_STR_KEY_PTR(CG(function_table), name, function) {
        for (size_t i = 0; name != NULL && i < sizeof prefixes / sizeof *prefixes; i++) {
            if (strncmp(ZSTR_VAL(name), prefixes[i], strlen(prefixes[i])) == 0) {
                async_wrap(function, call_alone);
            }
        }
    }
    ZEND_HASH_FOREACH_END();
    replace_function("pg_pconnect", "pg_connect");
    return true;
}
