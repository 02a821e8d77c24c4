/* The worker as a whole: whether it takes requests, its memory limit, the engine's interrupt. */
#ifndef HOWDAH_ASYNC_CORE_WORKER_H
#define HOWDAH_ASYNC_CORE_WORKER_H

#include "shim.h"

/* Drains the worker, because its state is no longer trusted or its limits are reached (shim_used_up()): running
 * requests are finished, then the process ends. */
void async_drain(void);
bool async_draining(void);
/* Records that the server sends no more requests. */
void async_stop(void);
/* True if the worker ends soon: it is draining, or the server sends no more requests. */
bool async_leaving(void);
/* Called when all requests are done and no more will arrive: everything that still runs must end. */
void async_end(void);
bool async_ending(void);
/* Called when the application has booted: the requests' memory is added to its own. */
void async_memory_booted(void);
/* Sets the memory limit for all requests together. */
void async_set_memory_limit(void);
/* Makes the engine call interrupt() in serving.c at the next safe point of the current coroutine's code. */
void async_interrupt(void);

#endif
