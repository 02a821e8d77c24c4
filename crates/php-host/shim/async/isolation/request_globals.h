/* The globals of PHP that belong to a request, and moving them. */
#ifndef HOWDAH_ASYNC_ISOLATION_REQUEST_GLOBALS_H
#define HOWDAH_ASYNC_ISOLATION_REQUEST_GLOBALS_H

#include "shim.h"
#include "async/core/coroutine.h"

void async_image_startup(void);
size_t async_image_size(void);
/* Puts the globals of `request` in place (NULL: those of the script between requests). Cheap when they are. A request
 * that begins gets what it inherits from the script's boot. */
void async_request_load(async_request *request);
/* Destroys what the globals in place hold, at the end of their request; then tells that nothing of them is left. */
void async_image_destroy(void);
void async_image_drop(void);

#endif
