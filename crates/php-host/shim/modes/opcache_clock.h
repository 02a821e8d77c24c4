/* OPcache's clock in a process that stays in one request of PHP, where the clock would otherwise stand still. */
#ifndef HOWDAH_MODES_OPCACHE_CLOCK_H
#define HOWDAH_MODES_OPCACHE_CLOCK_H

#include <stdbool.h>

/* Called before the request of PHP that the process stays in begins. */
void shim_opcache_clock_probe(void);
/* Returns true, and stores the probe time, if PHP's request is to begin with that time. */
bool shim_opcache_clock_probes(double *time);
/* Called after that request has begun: the clock works from now on. Until the first request of the server, OPcache
 * revalidates every file. */
void shim_opcache_clock_found(void);
/* Called when a request of the server has begun: sets OPcache's clock to its time. */
void shim_opcache_clock_now(void);

#endif
