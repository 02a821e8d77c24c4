/* Connections, files and the process itself, as far as others know of them. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_SETTLE_H
#define HOWDAH_SNAPSHOT_SESSIONS_SETTLE_H

#include "shim.h"

/* Before the boot. */
void shim_snapshot_settle_watch(void);
/* At the snapshot: why it cannot be taken, or NULL. */
const char *shim_snapshot_settle_boot(void);
/* At the begin of a request: what the boot has opened and is no more what it was, or NULL. */
const char *shim_snapshot_settle_outdated(void);
/* After all of PHP's part of a request: makes good for what it did outside of its memory. False when the worker must be
 * replaced, which is in the log then. `cut_off`: the script was ended in the middle. */
bool shim_snapshot_settle(bool cut_off);

#endif
