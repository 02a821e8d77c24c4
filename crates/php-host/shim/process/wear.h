/* Whether a worker may take another request. */
#ifndef HOWDAH_PROCESS_WEAR_H
#define HOWDAH_PROCESS_WEAR_H

#include <stdbool.h>

/* Whether the worker has to be replaced after the current request; the log says why, if that is no setting. */
bool shim_used_up(void);

#endif
