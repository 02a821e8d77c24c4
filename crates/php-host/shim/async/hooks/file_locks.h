/* Replaces flock(). See hooks.h. */
#ifndef HOWDAH_ASYNC_HOOKS_FILE_LOCKS_H
#define HOWDAH_ASYNC_HOOKS_FILE_LOCKS_H

#include "shim.h"

int async_flock(int fd, int operation);
/* Called when this process may have released a lock. */
void async_lock_released(void);
/* Called when a descriptor is closed, and its lock with it. */
void async_forget_lock(int fd);

#endif
