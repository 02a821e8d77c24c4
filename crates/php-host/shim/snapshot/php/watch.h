/* Calls with which a script changes its process in ways that no restore brings back. */
#ifndef HOWDAH_SNAPSHOT_PHP_WATCH_H
#define HOWDAH_SNAPSHOT_PHP_WATCH_H

#include "shim.h"

void shim_snapshot_watch(void);
void shim_snapshot_watch_boot(void);
/* The handler has run: what is left of the request is the body of the script's loop. */
void shim_snapshot_watch_responded(void);
const char *shim_snapshot_watch_settle(void);

#endif
