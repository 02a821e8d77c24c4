/* One whole request of PHP, from its start to its end. */
#ifndef HOWDAH_SAPI_WHOLE_REQUEST_H
#define HOWDAH_SAPI_WHOLE_REQUEST_H

#include "shim.h"

/* Prepares PHP for the current request and runs its script. A PHP bailout may leave it. */
shim_outcome shim_whole_request_run(void);
/* Releases the script's resources, also after a bailout. */
shim_outcome shim_whole_request_end(void);
/* Responds with 403 or 404 instead of running the script. */
void shim_respond_instead(unsigned status);

#endif
