/* Limits of a worker's lifetime. */
#ifndef HOWDAH_PROCESS_WEAR_H
#define HOWDAH_PROCESS_WEAR_H

#include <stdbool.h>

/* True if the worker must be replaced after the current request; the reason is logged unless it is a setting. */
bool shim_used_up(void);

#endif
