/* The list of modes. */
#include "modes/modes.h"

#include "shim.h"
#include "modes/mode.h"

#include <string.h>

static const shim_mode *const modes[] = {&shim_mode_classic, &shim_mode_worker, &shim_mode_snapshot, &shim_mode_async};

const shim_mode *shim_mode_named(const char *name) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i]->name, name) == 0) {
            return modes[i];
        }
    }
    return NULL;
}

SHIM_EXPORT const char *howdah_c_mode_name(size_t index) {
    return index < sizeof modes / sizeof *modes ? modes[index]->name : NULL;
}
