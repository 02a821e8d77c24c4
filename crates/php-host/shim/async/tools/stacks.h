/* Where coroutines stand, as text; errors that name two of them; deadlocks. */
#ifndef HOWDAH_ASYNC_TOOLS_STACKS_H
#define HOWDAH_ASYNC_TOOLS_STACKS_H

#include "shim.h"
#include "async/core/coroutine.h"

void async_stacks_class_startup(void);
void async_stacks_startup(void);
/* Where the running code of the application stands, as pools note it; a new string. */
zend_string *async_here(void);
/* Where a coroutine stands, as Exception::getTraceAsString() has it; a new string. */
zend_string *async_stack_of(const coroutine *self);
/* File and line where a coroutine that does not run will go on; a new string. */
zend_string *async_place_of(const coroutine *self);
/* Logs and throws that the current coroutine wants a connection which another one has. */
void async_refuse_concurrent_use(const char *message, const coroutine *other);
/* The current coroutine wants to wait for what another one waits for already: logged; thrown by the second function, as
 * nothing can be thrown from inside a hook. */
void async_stream_taken(const coroutine *other);
void async_throw_stream_taken(void);
/* All coroutines wait for each other: logs their stacks and fails those that can be. */
void async_report_deadlock(void);

#endif
