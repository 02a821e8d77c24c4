/* The request that this worker runs: taking it, ending its response, reporting it done. */
#ifndef HOWDAH_SAPI_CURRENT_REQUEST_H
#define HOWDAH_SAPI_CURRENT_REQUEST_H

#include "shim.h"

/* Makes a call the current one. */
void shim_call_set(const WireCall *call);
/* Waits for a call and makes it the current one. False when the worker shall end. */
bool shim_call_take(void);
/* Reports the current call done. */
void shim_call_finish(bool retire);
/* Ends the client's answer, once. True for the call that did it. */
bool shim_response_end(bool done_follows);
/* Whether the worker has reached max_requests or max_memory with the current call. */
bool shim_used_up(void);

#endif
