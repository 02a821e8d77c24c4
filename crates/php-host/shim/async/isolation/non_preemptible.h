/* Parts of PHP that must not be left in the middle: compiler, autoloader, collector, fatal errors. */
#ifndef HOWDAH_ASYNC_ISOLATION_NON_PREEMPTIBLE_H
#define HOWDAH_ASYNC_ISOLATION_NON_PREEMPTIBLE_H

#include "shim.h"

/* Functions in which nothing may wait. Functions are replaced after async_exclusive_install(). */
void async_guard_install(void);
void async_guard_startup(void);
void async_guard_shutdown(void);

#endif
