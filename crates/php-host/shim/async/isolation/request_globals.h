/* PHP's globals that belong to a request, and moving them. */
#ifndef HOWDAH_ASYNC_ISOLATION_REQUEST_GLOBALS_H
#define HOWDAH_ASYNC_ISOLATION_REQUEST_GLOBALS_H

#include "shim.h"
#include "async/core/coroutine.h"

void async_image_startup(void);
size_t async_image_size(void);
/* Installs the globals of `request` (NULL: those of the script between requests). Cheap if they already are. A request
 * that begins inherits from the script's boot. */
void async_request_load(async_request *request);
/* Destroys the content of the installed globals at the end of their request; marks them as not worth saving. */
void async_image_destroy(void);
void async_image_drop(void);

#endif
