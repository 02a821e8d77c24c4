/* The list of modes. A build may lack some of them (build.rs); the zygote never asks for those. */
#include "modes/modes.h"

#include "shim.h"
#include "modes/mode.h"

static const shim_mode *const modes[] = {
    [HOWDAH_MODE_CLASSIC] = &shim_mode_classic,
    [HOWDAH_MODE_WORKER] = &shim_mode_worker,
#if HOWDAH_WITH_SNAPSHOT
    [HOWDAH_MODE_SNAPSHOT] = &shim_mode_snapshot,
#endif
#if HOWDAH_WITH_ASYNC
    [HOWDAH_MODE_ASYNC] = &shim_mode_async,
#endif
};

const shim_mode *shim_mode_of(howdah_mode mode) {
    return modes[mode];
}
