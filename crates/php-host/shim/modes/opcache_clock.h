/* OPcache's clock in a process that stays in one request of PHP, where it stands still. */
#ifndef HOWDAH_MODES_OPCACHE_CLOCK_H
#define HOWDAH_MODES_OPCACHE_CLOCK_H

/* The request of PHP that the process stays in has just begun, and with it OPcache's time. */
void shim_opcache_clock_stops(void);
/* A request of the server has begun: what is too young to be cached goes by its time. */
void shim_opcache_clock_now(void);

#endif
