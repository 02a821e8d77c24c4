/* Times of async mode: the clock, and when coroutines that wait want to be woken. */
#ifndef HOWDAH_ASYNC_CORE_TIMERS_H
#define HOWDAH_ASYNC_CORE_TIMERS_H

#include "shim.h"
#include "async/core/coroutine.h"

/* Nanoseconds of the monotonic clock. */
uint64_t async_now(void);
/* The same, up to 10 ms ago, for a fraction of the time. */
uint64_t async_about_now(void);
/* The point in time `nanoseconds` from now; for huge values COROUTINE_FOREVER. */
uint64_t async_after(uint64_t nanoseconds);
void async_timer_add(coroutine *self);
void async_timer_remove(coroutine *self);
/* The coroutine to be woken first; NULL: none waits for a time. */
coroutine *async_timer_earliest(void);
void async_timers_shutdown(void);

#endif
