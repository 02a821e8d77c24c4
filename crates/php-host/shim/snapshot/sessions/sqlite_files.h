/* The files of the databases of SQLite that the boot has opened. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_SQLITE_FILES_H
#define HOWDAH_SNAPSHOT_SESSIONS_SQLITE_FILES_H

#include <stdbool.h>

/* At the snapshot: false if there are more than can be watched. */
bool shim_sqlite_files_note(const char *path);

/* At the begin of a request: what has happened to one of them, or NULL. */
const char *shim_sqlite_files_changed(void);

#endif
