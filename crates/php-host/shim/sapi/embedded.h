/* PHP code that is embedded in this program and not in a file. */
#ifndef HOWDAH_SAPI_EMBEDDED_H
#define HOWDAH_SAPI_EMBEDDED_H

#include "shim.h"

/* Runs a text in the global scope as PHP would run a file of this path. `changed` is its modification time. Returns
 * false if it does not compile, throws or exits. */
bool shim_embedded_run(const char *path, const char *text, size_t length, uint64_t changed);

#endif
