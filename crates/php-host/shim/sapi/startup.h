/* Start and end of PHP in a process. */
#ifndef HOWDAH_SAPI_STARTUP_H
#define HOWDAH_SAPI_STARTUP_H

#include "shim.h"

extern sapi_module_struct shim_sapi_module;

#endif
