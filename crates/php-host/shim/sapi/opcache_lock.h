/* OPcache's usage lock, kept between requests; see opcache_lock.c. */
#ifndef HOWDAH_SAPI_OPCACHE_LOCK_H
#define HOWDAH_SAPI_OPCACHE_LOCK_H

#include <stdbool.h>

/* For modes that end PHP's request with each of the server's. */
void shim_opcache_lock_watch(void);
/* True if this process holds the lock although it runs no request. */
bool shim_opcache_lock_is_kept(void);
void shim_opcache_lock_release(void);

#endif
