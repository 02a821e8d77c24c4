/* Changes that scripts make to their process and that PHP does not undo. */
#ifndef HOWDAH_PROCESS_CHANGES_H
#define HOWDAH_PROCESS_CHANGES_H

#include <stdbool.h>

/* Watches the functions that change the process. Called once, when PHP's modules have started. */
void shim_changes_watch(void);
/* Returns a description of the changes by requests that stay with the process, or NULL. */
const char *shim_changes_left(void);
/* True if scripts may call functions of libraries by FFI: such calls bypass the import tables. */
bool shim_calls_unseen(void);

#endif
