/* The worker as a whole: whether it takes requests, its limit of memory, the engine's interrupt. */
#ifndef HOWDAH_ASYNC_CORE_WORKER_H
#define HOWDAH_ASYNC_CORE_WORKER_H

#include "shim.h"

/* The worker's state is no longer trusted: what runs is finished, then the process ends. */
void async_drain(void);
bool async_draining(void);
/* All requests are done and no more will come: what still runs is to end. */
void async_end(void);
bool async_ending(void);
/* The application has booted: requests get their memory on top of what it has. */
void async_memory_booted(void);
/* The limit of memory for all requests together. */
void async_set_memory_limit(void);
/* Makes the engine call us at the next safe point of the current coroutine's code. */
void async_interrupt(void);

#endif
