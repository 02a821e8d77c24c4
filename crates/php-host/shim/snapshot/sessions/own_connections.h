/* Connections of the boot that cannot be shared: a function of the application opens them again in each worker that is
 * forked, which then has its own in their place. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_OWN_CONNECTIONS_H
#define HOWDAH_SNAPSHOT_SESSIONS_OWN_CONNECTIONS_H

#include <stdbool.h>

/* Called before workers are forked from this process. True if they have to open connections. */
bool shim_own_connections_offer(void);
/* Called in a forked worker, on the snapshot: opens its connections. NULL, or what went wrong. */
const char *shim_own_connections_open(void);
/* Called after the restore that follows: gives them the sessions of the boot. NULL, or what went wrong: the boot is
 * outdated then. */
const char *shim_own_connections_set_up(void);

#endif
