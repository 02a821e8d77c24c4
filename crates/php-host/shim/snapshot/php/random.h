/* Ensures that no two requests get the same random numbers. */
#ifndef HOWDAH_SNAPSHOT_PHP_RANDOM_H
#define HOWDAH_SNAPSHOT_PHP_RANDOM_H

#include "shim.h"

/* Watches how engines of ext/random are seeded. Called after PHP's modules have started. */
void shim_snapshot_random_watch(void);
/* Called at the snapshot: leaves generators in a state in which their next use takes fresh randomness from the
 * kernel. */
void shim_snapshot_random_forget(void);
/* Called in a worker forked from another one: discards random state that it shares with that one. */
void shim_snapshot_random_forked(void);
/* Called at the start of a request: reseeds generators that do not reseed automatically. */
void shim_snapshot_random_renew(void);
/* Called in a fork of the booting process that runs one request and ends. */
void shim_snapshot_random_apart(void);

#endif
