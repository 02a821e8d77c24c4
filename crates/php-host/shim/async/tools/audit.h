/* Finds state that requests leave behind, for development. */
#ifndef HOWDAH_ASYNC_TOOLS_AUDIT_H
#define HOWDAH_ASYNC_TOOLS_AUDIT_H

#include "shim.h"
#include "async/core/coroutine.h"

void async_audit_startup(void);
/* Around a request's handler, with its globals in place; another request has begun meanwhile. `alone`: none runs at its
 * beginning. */
void async_audit_begin(bool alone);
void async_audit_overlap(void);
void async_audit_end(void);
/* A waiting call is about to be made where nothing may wait. */
void async_audit_blocked(void);
/* Around what a coroutine does between two waits. */
void async_audit_turn_begin(const coroutine *self);
void async_audit_turn_end(const coroutine *self);

#endif
