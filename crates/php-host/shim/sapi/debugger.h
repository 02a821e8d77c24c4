/* Step debugging where a script runs already when a request comes. */
#ifndef HOWDAH_SAPI_DEBUGGER_H
#define HOWDAH_SAPI_DEBUGGER_H

#include "shim.h"

typedef enum shim_debug_what {
    SHIM_DEBUG_BOOT_TOO,
    SHIM_DEBUG_REQUESTS, /* a session cannot last from the boot into requests */
} shim_debug_what;
/* In a mode whose script takes requests, before it boots. */
void shim_debugger_prepare(shim_debug_what what);
/* At the beginning of a request: opens a debugger's session if the request asks for one. */
void shim_debugger_begin(void);

#endif
