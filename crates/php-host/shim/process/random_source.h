/* Random bytes without system calls. */
#ifndef HOWDAH_PROCESS_RANDOM_SOURCE_H
#define HOWDAH_PROCESS_RANDOM_SOURCE_H

#include "shim.h"

/* From now on this thread takes random bytes from the kernel's generator without system calls, where there is one. */
void shim_random_install(void);

#endif
