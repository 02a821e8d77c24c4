/* Finds state that requests leave behind, for development. */
#ifndef HOWDAH_ASYNC_TOOLS_AUDIT_H
#define HOWDAH_ASYNC_TOOLS_AUDIT_H

#include "shim.h"
#include "async/core/coroutine.h"

void async_audit_startup(void);
/* Called around a request's handler, with its globals installed, and when another request begins in the meantime.
 * `alone`: no other request runs at its beginning. */
void async_audit_begin(bool alone);
void async_audit_overlap(void);
void async_audit_end(void);
/* Called before a waiting call where nothing may wait. */
void async_audit_blocked(void);
/* Called around the code that a coroutine runs between two waits. */
void async_audit_turn_begin(const coroutine *self);
void async_audit_turn_end(const coroutine *self);

#endif
