/* Limits of a worker's life. */
#ifndef HOWDAH_PROCESS_WEAR_H
#define HOWDAH_PROCESS_WEAR_H

#include <stdbool.h>

/* True if the worker has to be replaced after the current request; the log has the reason, if that is no setting. */
bool shim_used_up(void);

#endif
