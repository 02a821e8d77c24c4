/* Connection pools of async mode, the C part: the connections, their holders, and the statistics. Howdah\Pool
 * (php/async) does everything that may wait: opening, checking, resetting, queueing. */
#ifndef HOWDAH_ASYNC_POOLS_POOLS_H
#define HOWDAH_ASYNC_POOLS_POOLS_H

#include "shim.h"
#include "async/core/coroutine.h"

/* Howdah\Internal\Connections: the connections of one pool. Its properties are the numbers of wire.h, in their
 * order. */
typedef struct connection_pool connection_pool;
/* Howdah\Internal\PooledConnection: one connection, for its pool. */
typedef struct pooled pooled;

struct connection_pool {
    double check_after, lifetime;
    /* PHP code must check before a connection is taken: it keeps a minimum of them open. */
    bool look_first;
    /* True if a coroutine of the pool closes expired idle connections. */
    bool kept;
    bool closed;
    /* Idle connections, the one used last at the end. */
    pooled **idle;
    uint32_t idle_size;
    /* Leased connections, by the handle of the connection's object. */
    HashTable in_use;
    /* Called with a connection that its coroutine has not returned. */
    zval forget;
    /* Slot of its statistics (async/pools/numbers.c); -1: none. */
    int slot;
    connection_pool *next, *previous;
    zend_object std;
};

struct pooled {
    connection_pool *pool;
    /* The coroutine that has taken it, and that coroutine's other connections. */
    coroutine *holder;
    pooled *next, *previous;
    zend_object std;
};

void async_pools_class_startup(void);
/* Returns the coroutine's connections to their pools, without waiting. */
void async_pools_come_back(coroutine *holder);
/* Releases the connections of a coroutine that a fatal error has ended; their pools are not notified. */
void async_pools_let_go(coroutine *holder);

#endif
