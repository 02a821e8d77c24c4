/* Watches OPcache's free memory. */
#ifndef HOWDAH_SAPI_OPCACHE_ROOM_H
#define HOWDAH_SAPI_OPCACHE_ROOM_H

/* Called before the zygote forks: allocates memory that all workers of the pool share. */
void shim_opcache_room_startup(void);
/* Logs that OPcache is full or has restarted for that, each warning once per zygote. Called with PHP's request open and
 * no PHP code running. */
void shim_opcache_room_check(void);
/* Checks after every 256th request of this process. */
void shim_opcache_room_check_sometimes(void);

#endif
