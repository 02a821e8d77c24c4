/* Random bytes without system calls. */
#ifndef HOWDAH_PROCESS_RANDOM_SOURCE_H
#define HOWDAH_PROCESS_RANDOM_SOURCE_H

#include "shim.h"

/* Makes this thread take random bytes from the kernel's generator without system calls, if the kernel supports that. */
void shim_random_install(void);

#endif
