/* What scripts change of their process and PHP does not put back. */
#ifndef HOWDAH_PROCESS_CHANGES_H
#define HOWDAH_PROCESS_CHANGES_H

/* Watches the functions that change the process. Once, when PHP's modules have started. */
void shim_changes_watch(void);
/* What requests have changed that stays with the process, or NULL. */
const char *shim_changes_left(void);

#endif
