/* The scheduler: runs coroutines that are ready, and sleeps when there are none. */
#ifndef HOWDAH_ASYNC_CORE_LOOP_H
#define HOWDAH_ASYNC_CORE_LOOP_H

#include "shim.h"
#include "async/core/coroutine.h"

bool async_loop_startup(void);
void async_loop_shutdown(void);
/* Runs coroutines until `finished()`; `take_events()` takes requests before each turn. */
void async_loop_run(bool (*finished)(void), void (*take_events)(void));
/* Requests and descriptors are looked at before the next coroutine runs. */
void async_loop_end_turn(void);
/* Nanoseconds of the monotonic clock. */
uint64_t async_now(void);
/* The same, up to 10 ms ago, for a fraction of the time. */
uint64_t async_about_now(void);
/* The point in time `nanoseconds` from now; for huge values COROUTINE_FOREVER. */
uint64_t async_after(uint64_t nanoseconds);
void async_timer_add(coroutine *self);
void async_timer_remove(coroutine *self);

#endif
