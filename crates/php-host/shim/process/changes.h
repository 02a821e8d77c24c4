/* Changes of scripts to their process that PHP does not undo. */
#ifndef HOWDAH_PROCESS_CHANGES_H
#define HOWDAH_PROCESS_CHANGES_H

#include <stdbool.h>

/* Watches the functions that change the process. Once, when PHP's modules have started. */
void shim_changes_watch(void);
/* Description of changes by requests that stay with the process, or NULL. */
const char *shim_changes_left(void);
/* True if scripts may call functions of libraries by FFI: no table of imports shows those calls. */
bool shim_calls_unseen(void);

#endif
