/* The files of SQLite databases that the boot opened. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_SQLITE_FILES_H
#define HOWDAH_SNAPSHOT_SESSIONS_SQLITE_FILES_H

#include <stdbool.h>

/* Called at the snapshot: false if there are more than can be watched. */
bool shim_sqlite_files_note(const char *path);

/* Called at the beginning of a request: a description of a change to one of them, or NULL. */
const char *shim_sqlite_files_changed(void);

#endif
