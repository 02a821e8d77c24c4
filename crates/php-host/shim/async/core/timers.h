/* The clock of async mode, and the timers of waiting coroutines. */
#ifndef HOWDAH_ASYNC_CORE_TIMERS_H
#define HOWDAH_ASYNC_CORE_TIMERS_H

#include "shim.h"
#include "async/core/coroutine.h"

/* Returns the time in nanoseconds of the monotonic clock. */
uint64_t async_now(void);
/* Returns that time, up to 10 ms late, at a fraction of the cost. */
uint64_t async_about_now(void);
/* Returns the time `nanoseconds` from now; COROUTINE_FOREVER for huge values. */
uint64_t async_after(uint64_t nanoseconds);
/* Returns the end of a wait for so many seconds; COROUTINE_FOREVER with `forever`. */
uint64_t async_until(double seconds, bool forever);
void async_timer_add(coroutine *self);
void async_timer_remove(coroutine *self);
/* Returns the coroutine with the earliest timer; NULL: there is no timer. */
coroutine *async_timer_earliest(void);
void async_timers_shutdown(void);

#endif
