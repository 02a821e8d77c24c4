/* Serving: what the server sends, cancellation, and how a worker that runs many requests at once ends. */
#ifndef HOWDAH_ASYNC_CORE_SERVING_H
#define HOWDAH_ASYNC_CORE_SERVING_H

#include "shim.h"

/* Runs the function for each request until the server has no more. */
void async_serve(zend_fcall_info *function, zend_fcall_info_cache *cache);
/* The worker's state is no longer trusted: what runs is finished, then the process ends. */
void async_drain(void);
bool async_draining(void);
/* All requests are done and no more will come: what still runs is to end. */
bool async_ending(void);
/* The limit of memory for all requests together. */
void async_set_memory_limit(void);
/* Takes what the server sent: new requests, cancellations, the end. */
void async_take_events(void);
/* Makes the engine call us at the next safe point of the current coroutine's code. */
void async_interrupt(void);

#endif
