/* Stacks of coroutines as text; errors that name two of them; deadlocks. */
#ifndef HOWDAH_ASYNC_TOOLS_STACKS_H
#define HOWDAH_ASYNC_TOOLS_STACKS_H

#include "shim.h"
#include "async/core/coroutine.h"

void async_stacks_class_startup(void);
void async_stacks_startup(void);
/* Returns the current position in the application's code, as pools record it; a new string. */
zend_string *async_here(void);
/* Returns a coroutine's stack, formatted like Exception::getTraceAsString(); a new string. */
zend_string *async_stack_of(const coroutine *self);
/* Returns file and line where a waiting coroutine will continue; a new string. */
zend_string *async_place_of(const coroutine *self);
/* Logs and throws that the current coroutine tries to use a connection that another one is using. */
void async_refuse_concurrent_use(const char *message, const coroutine *other);
/* The current coroutine tries to wait for a descriptor that another one already waits for: this is logged, and thrown
 * by the second function, as nothing can be thrown from inside a hook. */
void async_stream_taken(const coroutine *other);
void async_throw_stream_taken(void);
/* Called when all coroutines wait for each other: logs their stacks and fails those that can be failed. */
void async_report_deadlock(void);

#endif
