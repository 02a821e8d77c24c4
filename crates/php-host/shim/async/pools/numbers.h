/* Statistics of connection pools, written where the server reads them. */
#ifndef HOWDAH_ASYNC_POOLS_NUMBERS_H
#define HOWDAH_ASYNC_POOLS_NUMBERS_H

#include "shim.h"
#include "async/pools/pools.h"

/* Writes the statistics of all connection pools to where the server reads them. */
void async_pools_publish(void);
/* Assigns a pool to the slot of its name. */
void async_pool_numbers_add(connection_pool *self, const zend_string *name);
void async_pool_numbers_remove(connection_pool *self);
/* Returns a name, as a new string, for a pool that was created without one: its kind, with a number if another pool has
 * that name. */
zend_string *async_pool_free_name(zend_string *kind);

static inline zval *pool_number_of(connection_pool *self, pool_number which) {
    return OBJ_PROP_NUM(&self->std, which);
}

#endif
