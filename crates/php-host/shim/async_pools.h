/* Connection pools of async mode, the part that is C: which connections there are, who has them, and what was counted.
 * Howdah\Pool (php/async) decides about everything that may wait: opening, checking, resetting, waiting in line. */
#ifndef HOWDAH_ASYNC_POOLS_H
#define HOWDAH_ASYNC_POOLS_H

#include "async.h"

/* Howdah\Internal\Connections: the connections of one pool. Its properties are the numbers of wire.h, in their order.
 */
typedef struct connection_pool connection_pool;
/* Howdah\Internal\PooledConnection: one connection as its pool sees it. */
typedef struct pooled pooled;

struct connection_pool {
    double check_after, lifetime;
    /* Somebody has to look before a connection is taken: PHP keeps a minimum of them open. */
    bool look_first;
    /* Unused connections expire by themselves: a coroutine of the pool sees to it. */
    bool kept;
    bool closed;
    /* Unused ones, the one used last at the end. */
    pooled **idle;
    uint32_t idle_size;
    /* By the handle of the connection's object. */
    HashTable in_use;
    /* Called with a connection that its coroutine has left behind. */
    zval forget;
    /* Where its numbers are told (async_pool_numbers.c); -1: nowhere. */
    int slot;
    connection_pool *next, *previous;
    zend_object std;
};

struct pooled {
    connection_pool *pool;
    /* The coroutine that has taken it, and the others which that one has. */
    coroutine *holder;
    pooled *next, *previous;
    zend_object std;
};

/* --- async_pool_connection.c --- */

/* Properties of a PooledConnection, in the order in which they are declared. */
enum { POOLED_CONNECTION, POOLED_STATE, POOLED_BORN, POOLED_SEEN, POOLED_TAKEN, POOLED_AS_NEW };
/* Those of a ConnectionState: what the connection's own class notes about its use. */
enum { STATE_CHANGED, STATE_DOUBTFUL, STATE_BEGUN, STATE_ROLLED_BACK, STATE_ATTRIBUTES };

void async_pool_connection_startup(void);
pooled *pooled_of(zend_object *object);
bool is_pooled(const zend_object *object);
/* The connection is the current request's, or nobody's. */
void connection_state_lend(zend_object *state);
void connection_state_take_back(zend_object *state);

static inline zval *pooled_property(pooled *entry, uint32_t which) {
    return OBJ_PROP_NUM(&entry->std, which);
}

/* --- async_pool_numbers.c --- */

/* Gives a pool the slot of its name. */
void async_pool_numbers_add(connection_pool *self, const zend_string *name);
void async_pool_numbers_remove(connection_pool *self);
/* The name for a pool that was given none: of its kind, and not another pool's; a new string. */
zend_string *async_pool_free_name(zend_string *kind);

static inline zval *pool_number_of(connection_pool *self, pool_number which) {
    return OBJ_PROP_NUM(&self->std, which);
}

#endif
