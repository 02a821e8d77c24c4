/* Decides whether a call of libc may wait in its coroutine. */
#ifndef HOWDAH_ASYNC_HOOKS_WAITS_H
#define HOWDAH_ASYNC_HOOKS_WAITS_H

#include "shim.h"

/* Marks the calling thread as the one that runs PHP. */
void async_waits_begin(void);
/* True if the calling code may wait in its coroutine. */
bool async_may_wait(void);
/* The same, for calls that certainly wait: the audit reports where they can only block. */
bool async_may_sleep(void);
/* True if the calling code's changes to descriptors affect the worker's. */
bool async_owns_descriptors(void);

#endif
