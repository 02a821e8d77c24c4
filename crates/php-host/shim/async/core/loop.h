/* The scheduler: runs coroutines that are ready, and sleeps when there are none. */
#ifndef HOWDAH_ASYNC_CORE_LOOP_H
#define HOWDAH_ASYNC_CORE_LOOP_H

#include "shim.h"

bool async_loop_startup(void);
void async_loop_shutdown(void);
/* Runs coroutines until `finished()`; `take_events()` takes requests before each turn. */
void async_loop_run(bool (*finished)(void), void (*take_events)(void));

#endif
