/* The list of modes. Only for modes/: other files use shim.mode. */
#ifndef HOWDAH_MODES_MODES_H
#define HOWDAH_MODES_MODES_H

#include "shim.h"
#include "modes/mode.h"

extern const shim_mode shim_mode_async;
extern const shim_mode shim_mode_classic;
extern const shim_mode shim_mode_snapshot;
extern const shim_mode shim_mode_worker;

#endif
