/* Connections, files and the process itself, as far as others can see them. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_SETTLE_H
#define HOWDAH_SNAPSHOT_SESSIONS_SETTLE_H

#include "shim.h"

/* Called before the boot. */
void shim_snapshot_settle_watch(void);
/* Called at the snapshot: the reason why it cannot be taken, or NULL. */
const char *shim_snapshot_settle_boot(void);
/* Called at the beginning of a request: a resource of the boot that has changed in the meantime, or NULL. */
const char *shim_snapshot_settle_outdated(void);
/* Called when PHP has ended a request: undoes the request's effects outside of memory. False when the worker must be
 * replaced; the reason has been logged then. `cut_off`: the script was ended in the middle. */
bool shim_snapshot_settle(bool cut_off);

#endif
