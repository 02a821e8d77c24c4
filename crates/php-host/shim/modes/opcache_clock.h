/* OPcache's clock in a process that stays in one request of PHP, where it would stand still. */
#ifndef HOWDAH_MODES_OPCACHE_CLOCK_H
#define HOWDAH_MODES_OPCACHE_CLOCK_H

#include <stdbool.h>

/* The request of PHP that the process stays in is about to begin. */
void shim_opcache_clock_probe(void);
/* True if PHP's request begins at that time, which is stored. */
bool shim_opcache_clock_probes(double *time);
/* It has begun: the clock goes from now on, and until the first request of the server every file is looked at again. */
void shim_opcache_clock_found(void);
/* A request of the server has begun: its time is OPcache's. */
void shim_opcache_clock_now(void);

#endif
