/* Forks of a process that runs PHP. */
#ifndef HOWDAH_PROCESS_FORK_H
#define HOWDAH_PROCESS_FORK_H

#include "shim.h"

/* Marks the processes that scripts fork from now on. */
void shim_fork_watch(void);
/* fork() of a child that continues as this worker. */
pid_t shim_fork_with_lane(void);

#endif
