/* The list of modes. */
#include "modes/modes.h"

#include "shim.h"
#include "modes/mode.h"

static const shim_mode *const modes[] = {
    [HOWDAH_MODE_CLASSIC] = &shim_mode_classic,
    [HOWDAH_MODE_WORKER] = &shim_mode_worker,
    [HOWDAH_MODE_SNAPSHOT] = &shim_mode_snapshot,
    [HOWDAH_MODE_ASYNC] = &shim_mode_async,
};

const shim_mode *shim_mode_of(howdah_mode mode) {
    return modes[mode];
}
