/* The short way of connections from and to their pools. */
#ifndef HOWDAH_ASYNC_POOLS_POOL_PATH_H
#define HOWDAH_ASYNC_POOLS_POOL_PATH_H

#include "shim.h"

void async_pool_path_class_startup(void);

#endif
