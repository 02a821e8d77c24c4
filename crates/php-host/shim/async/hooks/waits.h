/* Where a call of libc may wait in its coroutine. */
#ifndef HOWDAH_ASYNC_HOOKS_WAITS_H
#define HOWDAH_ASYNC_HOOKS_WAITS_H

#include "shim.h"

/* The calling thread is the one that runs PHP. */
void async_waits_begin(void);
/* True if the calling code may be made to wait in its coroutine. */
bool async_may_wait(void);
/* The same for calls that are made to wait: the audit reports where they can only block. */
bool async_may_sleep(void);
/* True if what the calling code does to a descriptor is done to the worker's. */
bool async_owns_descriptors(void);

#endif
