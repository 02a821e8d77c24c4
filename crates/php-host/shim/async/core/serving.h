/* Serving: events from the server, cancellation, and the end of a worker that runs many requests at once. */
#ifndef HOWDAH_ASYNC_CORE_SERVING_H
#define HOWDAH_ASYNC_CORE_SERVING_H

#include "shim.h"

/* Runs the function for each request until the server sends no more or the worker drains, and all are done. */
void async_serve(zend_fcall_info *function, zend_fcall_info_cache *cache);

#endif
