/* The shim's checks for a pool's sandbox. See sandbox.c. */
#ifndef HOWDAH_SANDBOX_H
#define HOWDAH_SANDBOX_H

#include "shim.h"

/* True if a request may run this script: false when it is where workers can write. */
bool shim_sandbox_may_start(const char *path);
/* Watches which files are opened as code. Called while PHP's modules start, because OPcache saves the function that
 * opens files then. */
void shim_sandbox_startup(void);

#endif
