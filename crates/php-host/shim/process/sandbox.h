/* Questions of the rest of the shim about a pool's sandbox. See sandbox.c. */
#ifndef HOWDAH_SANDBOX_H
#define HOWDAH_SANDBOX_H

#include "shim.h"

/* True if a request may run this script: not when it lies where workers can write. */
bool shim_sandbox_may_start(const char *path);
/* Watches which files are opened as code, while PHP's modules start: OPcache remembers how files are opened then. */
void shim_sandbox_startup(void);

#endif
