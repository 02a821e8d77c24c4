/* Step debugging with a script that is already running when a request arrives. */
#ifndef HOWDAH_SAPI_DEBUGGER_H
#define HOWDAH_SAPI_DEBUGGER_H

#include "shim.h"

typedef enum shim_debug_what {
    SHIM_DEBUG_BOOT_TOO,
    SHIM_DEBUG_REQUESTS, /* a session cannot last from the boot into requests */
} shim_debug_what;
/* Prepares a mode whose script takes requests, before the script boots. */
void shim_debugger_prepare(shim_debug_what what);
/* Called at the beginning of a request: opens a debugging session if the request, or xdebug.start_with_request, asks
 * for one. */
void shim_debugger_begin(void);

#endif
