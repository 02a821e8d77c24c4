/* Calls with which a script changes state of the kernel. */
#ifndef HOWDAH_SNAPSHOT_PHP_WATCH_H
#define HOWDAH_SNAPSHOT_PHP_WATCH_H

#include "shim.h"

void shim_snapshot_watch(void);
void shim_snapshot_watch_boot(void);
/* Called when the handler has run: only the body of the script's loop remains of the request. */
void shim_snapshot_watch_responded(void);
const char *shim_snapshot_watch_settle(void);

#endif
