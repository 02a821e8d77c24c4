/* Time slices for handlers that compute. */
#ifndef HOWDAH_ASYNC_TOOLS_TIME_SLICE_H
#define HOWDAH_ASYNC_TOOLS_TIME_SLICE_H

#include "shim.h"

void async_slice_startup(void);
/* Called when a coroutine begins or continues. */
void async_slice_begin(void);
/* Yields if the current coroutine has used its time slice. */
void async_slice_check(void);
/* Called at the beginning of a turn of the loop. */
void async_slice_begin_turn(void);
/* True if a coroutine has used its time slice in this turn: requests and descriptors are checked before the next. */
bool async_slice_ends_turn(void);

#endif
