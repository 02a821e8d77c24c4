/* Resources of the boot that other processes can see: checks whether a snapshot can be taken with them, and restores
 * them after each request to their state at the snapshot. This happens before the server learns that the request is
 * over: a worker that cannot take another request reports that at the same time. */
#include "snapshot/sessions/settle.h"

#include "shim.h"
#include "sapi/log.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/pool_notes.h"
#include "snapshot/php/watch.h"
#include "snapshot/sessions/sqlite.h"
#include "snapshot/sessions/sqlite_files.h"
#include "snapshot/sessions/tap.h"

#include <syslog.h>

void shim_snapshot_settle_watch(void) {
    shim_snapshot_tap_install();
    shim_snapshot_sqlite_watch();
    shim_snapshot_watch();
}

const char *shim_snapshot_settle_boot(void) {
    shim_snapshot_watch_boot();
    const char *trouble = shim_snapshot_sqlite_boot();
    return trouble != NULL ? trouble : shim_snapshot_tap_boot();
}

const char *shim_snapshot_settle_outdated(void) {
    return shim_sqlite_files_changed();
}

bool shim_snapshot_settle(bool cut_off) {
    if (shim.script_child) {
        return true;
    }
    const char *trouble = shim_snapshot_sqlite_settle();
    if (trouble == NULL) {
        trouble = shim_snapshot_tap_settle(cut_off);
    }
    if (trouble == NULL) {
        trouble = shim_snapshot_watch_settle();
    }
    if (trouble != NULL) {
        snapshot_spoil(trouble);
    }
    if (snapshot_restorable()) {
        return true;
    }
    if (snapshot_lock_was_lost()) {
        shim_snapshot_advise(TAP_ADVICE_FILES, NULL);
    }
    shim_log(LOG_NOTICE, "snapshot: worker replaced: %s", snapshot_reason());
    return false;
}
