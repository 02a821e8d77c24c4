/* Decides when requests begin. */
#ifndef HOWDAH_ASYNC_CORE_ADMISSION_H
#define HOWDAH_ASYNC_CORE_ADMISSION_H

#include "shim.h"
#include "async/core/coroutine.h"

typedef enum async_admission {
    ADMISSION_EMPTY, /* no request is queued */
    ADMISSION_OPEN,  /* the next one may begin */
    ADMISSION_FULL,
} async_admission;
/* Queues a request. */
void async_admission_add(async_request *request);
/* Starts the next request; false if there is none or it may not begin yet. */
bool async_admission_next(void);
/* Starts this request, if it has not begun. */
void async_admission_begin_at_once(uint64_t number);
async_admission async_admission_state(void);
/* Returns the end of a pause that begins now: an idle worker waits until then before it lets more requests begin. */
uint64_t async_admission_pause_until(void);
/* Called after such a pause. */
void async_admission_pause(void);
/* Called once per turn of the loop: starts all queued requests if none has ended for some time. */
void async_admission_check(void);
void async_admission_ended(const async_request *request);

#endif
