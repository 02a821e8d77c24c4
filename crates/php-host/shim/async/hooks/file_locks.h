/* Replaces flock(). See hooks.h. */
#ifndef HOWDAH_ASYNC_HOOKS_FILE_LOCKS_H
#define HOWDAH_ASYNC_HOOKS_FILE_LOCKS_H

#include "shim.h"

int async_flock(int fd, int operation);
/* This process has let go of a lock, perhaps. */
void async_lock_released(void);
/* A descriptor is closed, and its lock with it. */
void async_forget_lock(int fd);

#endif
