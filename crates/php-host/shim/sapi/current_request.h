/* The request that this worker runs: taking it, ending its response, reporting it done. */
#ifndef HOWDAH_SAPI_CURRENT_REQUEST_H
#define HOWDAH_SAPI_CURRENT_REQUEST_H

#include "shim.h"

/* Makes a request the current one. */
void shim_request_set(const WireRequest *request);
/* Waits for a request and makes it the current one. False when the worker must end. */
bool shim_request_take(void);
/* Reports the current request done. */
void shim_request_finish(bool retire);
/* Ends the client's response, once. True for the call that did it. */
bool shim_response_end(bool done_follows);

#endif
