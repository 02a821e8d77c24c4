/* Random numbers: no two requests see the same. */
#ifndef HOWDAH_SNAPSHOT_PHP_RANDOM_H
#define HOWDAH_SNAPSHOT_PHP_RANDOM_H

#include "shim.h"

/* Watches how engines of ext/random are seeded, after PHP's modules have started. */
void shim_snapshot_random_watch(void);
/* At the snapshot: generators are left in a state in which their next use takes fresh randomness from the kernel. */
void shim_snapshot_random_forget(void);
/* In a worker forked from another one: what that one has drawn is not this one's. */
void shim_snapshot_random_forked(void);
/* At the start of a request: for generators that do not reseed automatically. */
void shim_snapshot_random_renew(void);
/* In a fork of the booting process that runs one request and ends. */
void shim_snapshot_random_apart(void);

#endif
