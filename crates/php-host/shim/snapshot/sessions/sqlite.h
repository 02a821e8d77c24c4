/* SQLite databases that the application opened at boot. The functions return NULL, or the obstacle. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_SQLITE_H
#define HOWDAH_SNAPSHOT_SESSIONS_SQLITE_H

#include "shim.h"

void shim_snapshot_sqlite_watch(void);
const char *shim_snapshot_sqlite_boot(void);
const char *shim_snapshot_sqlite_settle(void);

#endif
