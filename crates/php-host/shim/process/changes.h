/* Changes of scripts to their process that PHP does not undo. */
#ifndef HOWDAH_PROCESS_CHANGES_H
#define HOWDAH_PROCESS_CHANGES_H

/* Watches the functions that change the process. Once, when PHP's modules have started. */
void shim_changes_watch(void);
/* Description of changes by requests that stay with the process, or NULL. */
const char *shim_changes_left(void);

#endif
