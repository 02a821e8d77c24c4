/* The engine's state that goes with each coroutine. */
#ifndef HOWDAH_ASYNC_CORE_COROUTINE_STATE_H
#define HOWDAH_ASYNC_CORE_COROUTINE_STATE_H

#include "shim.h"

void coroutine_state_startup(void);
size_t coroutine_state_size(void);
/* The state in which a coroutine begins. */
void coroutine_state_begin(void);
void coroutine_state_save(unsigned char *image);
void coroutine_state_load(const unsigned char *image);
/* Prints into the output buffers of a saved state. False: one of their callbacks runs. */
bool coroutine_state_print(unsigned char *image, const char *data, size_t length);
/* Releases what the state of an ending coroutine holds. */
void coroutine_state_end(void);

#endif
