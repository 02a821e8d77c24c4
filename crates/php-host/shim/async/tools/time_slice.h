/* Time slices for handlers that compute. */
#ifndef HOWDAH_ASYNC_TOOLS_TIME_SLICE_H
#define HOWDAH_ASYNC_TOOLS_TIME_SLICE_H

#include "shim.h"

void async_slice_startup(void);
/* A coroutine begins or goes on. */
void async_slice_begin(void);
/* Lets the others run if the current one has had its time. */
void async_slice_check(void);
/* A turn of the loop begins. */
void async_slice_begin_turn(void);
/* True if a coroutine has computed for long in this turn: requests and descriptors are looked at before the next. */
bool async_slice_ends_turn(void);

#endif
