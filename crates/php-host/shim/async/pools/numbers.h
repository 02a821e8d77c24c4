/* Numbers of connection pools, and their place for the server. */
#ifndef HOWDAH_ASYNC_POOLS_NUMBERS_H
#define HOWDAH_ASYNC_POOLS_NUMBERS_H

#include "shim.h"
#include "async/pools/pools.h"

/* Writes the numbers of all connection pools to where the server looks for them. */
void async_pools_publish(void);
/* Gives a pool the slot of its name. */
void async_pool_numbers_add(connection_pool *self, const zend_string *name);
void async_pool_numbers_remove(connection_pool *self);
/* The name for a pool that was given none: of its kind, and not another pool's; a new string. */
zend_string *async_pool_free_name(zend_string *kind);

static inline zval *pool_number_of(connection_pool *self, pool_number which) {
    return OBJ_PROP_NUM(&self->std, which);
}

#endif
