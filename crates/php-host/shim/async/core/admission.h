/* When requests begin. */
#ifndef HOWDAH_ASYNC_CORE_ADMISSION_H
#define HOWDAH_ASYNC_CORE_ADMISSION_H

#include "shim.h"
#include "async/core/coroutine.h"

typedef enum async_admission {
    ADMISSION_EMPTY, /* no request waits */
    ADMISSION_OPEN,  /* the next may */
    ADMISSION_FULL,
} async_admission;
/* A request wants to begin. */
void async_admission_add(async_request *request);
/* Lets the next one begin; false if there is none or it may not yet. */
bool async_admission_next(void);
/* Lets this one begin, if it has not. */
void async_admission_begin_at_once(uint64_t number);
async_admission async_admission_state(void);
/* Until when a worker that has nothing to do waits before it lets more begin; and that it has. */
uint64_t async_admission_patience(void);
void async_admission_pause(void);
/* Once per turn of the loop. */
void async_admission_look(void);
void async_admission_ended(const async_request *request);

#endif
