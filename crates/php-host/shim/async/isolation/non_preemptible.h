/* Parts of PHP that must not be interrupted: compiler, autoloader, collector, fatal errors. */
#ifndef HOWDAH_ASYNC_ISOLATION_NON_PREEMPTIBLE_H
#define HOWDAH_ASYNC_ISOLATION_NON_PREEMPTIBLE_H

#include "shim.h"

/* Wraps functions in which nothing may wait. Call it after async_exclusive_install(). */
void async_guard_install(void);
void async_guard_startup(void);
void async_guard_shutdown(void);

#endif
