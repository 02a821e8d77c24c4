/* The engine's state that is saved with each coroutine. */
#ifndef HOWDAH_ASYNC_CORE_COROUTINE_STATE_H
#define HOWDAH_ASYNC_CORE_COROUTINE_STATE_H

#include "shim.h"

void coroutine_state_startup(void);
size_t coroutine_state_size(void);
/* Installs the initial state of a coroutine. */
void coroutine_state_begin(void);
void coroutine_state_save(unsigned char *image);
void coroutine_state_load(const unsigned char *image);
/* Prints into the output buffers of a saved state. False if one of their callbacks is running, or output has ended. */
bool coroutine_state_print(unsigned char *image, const char *data, size_t length);
/* Releases everything that the state of an ending coroutine holds. */
void coroutine_state_end(void);

#endif
