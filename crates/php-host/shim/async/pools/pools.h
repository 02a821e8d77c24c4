/* Connection pools of async mode, the part that is C: which connections there are, who has them, and what was counted.
 * Howdah\Pool (php/async) decides about everything that may wait: opening, checking, resetting, waiting in line. */
#ifndef HOWDAH_ASYNC_POOLS_POOLS_H
#define HOWDAH_ASYNC_POOLS_POOLS_H

#include "shim.h"
#include "async/core/coroutine.h"

/* Howdah\Internal\Connections: the connections of one pool. Its properties are the numbers of wire.h, in their order.
 */
typedef struct connection_pool connection_pool;
/* Howdah\Internal\PooledConnection: one connection as its pool sees it. */
typedef struct pooled pooled;

struct connection_pool {
    double check_after, lifetime;
    /* Somebody has to look before a connection is taken: PHP keeps a minimum of them open. */
    bool look_first;
    /* A coroutine of the pool closes expired unused connections. */
    bool kept;
    bool closed;
    /* Unused ones, the one used last at the end. */
    pooled **idle;
    uint32_t idle_size;
    /* By the handle of the connection's object. */
    HashTable in_use;
    /* Called with a connection that its coroutine has left behind. */
    zval forget;
    /* Position of its numbers (async/pools/numbers.c); -1: none. */
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

void async_pools_class_startup(void);
/* The pools take back what the coroutine has of them, without waiting. */
void async_pools_come_back(coroutine *holder);
/* Releases one that a fatal error has ended: its pools are not notified. */
void async_pools_let_go(coroutine *holder);

#endif
