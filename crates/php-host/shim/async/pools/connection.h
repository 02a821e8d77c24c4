/* One connection of a pool, in the views of its pool and its own class. */
#ifndef HOWDAH_ASYNC_POOLS_CONNECTION_H
#define HOWDAH_ASYNC_POOLS_CONNECTION_H

#include "shim.h"
#include "async/pools/pools.h"

/* Properties of a PooledConnection, in the order in which they are declared. */
enum { POOLED_CONNECTION, POOLED_STATE, POOLED_BORN, POOLED_SEEN, POOLED_TAKEN, POOLED_AS_NEW };
/* Properties of a ConnectionState: the notes of the connection's own class about its use. */
enum { STATE_CHANGED, STATE_DOUBTFUL, STATE_BEGUN, STATE_ROLLED_BACK, STATE_ATTRIBUTES };

void async_pool_connection_startup(void);
pooled *pooled_of(zend_object *object);
bool is_pooled(const zend_object *object);
/* Lends the connection to the current request, or to none. */
void connection_state_lend(zend_object *state);
void connection_state_take_back(zend_object *state);

static inline zval *pooled_property(pooled *entry, uint32_t which) {
    return OBJ_PROP_NUM(&entry->std, which);
}

#endif
