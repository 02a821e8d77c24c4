/* Decides when requests begin. Requests that have begun come first, and of requests with short waits only some are in
 * progress at the same time: a request that begins, queries a database on the same machine and gets its answer at once
 * finds its memory in the CPU caches. Five hundred that all begin and then wait for their turn find it cold, in this
 * process and in the database's.
 *
 * So there is a window: the maximum number of requests that have begun and not ended. It does not limit those that wait
 * for long: whenever the worker has been idle for PAUSE_LENGTH although requests are queued, those in progress no
 * longer count. The window also doubles then, unless many requests have ended since the last pause: in that case they
 * are not slow, but wait for a processor, as the database does. The window shrinks when as many requests as it has
 * places end without such a pause while others are queued. */
#include "async/core/admission.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/timers.h"
#include "async/core/request.h"

#define MIN_WINDOW 8
/* Number of requests per place of the window that end between two pauses if they are short. */
#define MOVING 2
/* In nanoseconds: a database on the same machine answers faster. */
#define PAUSE_LENGTH UINT64_C(200000)
/* In nanoseconds. Handlers that compute and yield to each other leave no pause: if none ends for this long, all queued
 * requests begin. */
#define STANDSTILL UINT64_C(10000000)

static async_request *first, *last;
static uint32_t window = MIN_WINDOW;
/* Requests begun since the last pause and not ended, and how many begun since then have ended. */
static uint32_t running, ended;
static uint32_t pauses;
/* All requests that have ended since the last pause. */
static uint64_t moved;
/* Time since which requests have been queued and none has ended; 0: none is queued, or one has ended since the last
 * turn. */
static uint64_t standing_since;

void async_admission_add(async_request *request) {
    request->next = NULL;
    if (last != NULL) {
        last->next = request;
    } else {
        first = request;
    }
    last = request;
}

static async_request *take(void) {
    async_request *request = first;
    first = request->next;
    if (first == NULL) {
        last = NULL;
    }
    return request;
}

static void begin(async_request *request) {
    request->pauses = pauses;
    running++;
    async_request_begin(request);
}

void async_admission_begin_at_once(uint64_t number) {
    for (async_request **at = &first, *before = NULL; *at != NULL; before = *at, at = &(*at)->next) {
        if ((*at)->number == number) {
            async_request *request = *at;
            *at = request->next;
            if (last == request) {
                last = before;
            }
            begin(request);
            return;
        }
    }
}

bool async_admission_next(void) {
    if (first == NULL || running >= window) {
        return false;
    }
    begin(take());
    return true;
}

async_admission async_admission_state(void) {
    return first == NULL ? ADMISSION_EMPTY : running < window ? ADMISSION_OPEN : ADMISSION_FULL;
}

void async_admission_pause(void) {
    pauses++;
    running = 0;
    ended = 0;
    if (moved < (uint64_t)window * MOVING) {
        window = MAX(MIN(window * 2, async_request_count()), MIN_WINDOW);
    }
    moved = 0;
}

void async_admission_check(void) {
    if (first == NULL) {
        standing_since = 0;
        return;
    }
    uint64_t now = async_now();
    if (standing_since == 0) {
        standing_since = now;
    } else if (now - standing_since > STANDSTILL) {
        async_admission_pause();
        while (first != NULL) {
            begin(take());
        }
    }
}

uint64_t async_admission_pause_until(void) {
    return async_after(PAUSE_LENGTH);
}

void async_admission_ended(const async_request *request) {
    standing_since = 0;
    moved++;
    if (request->pauses != pauses) {
        return;
    }
    running--;
    if (first != NULL && ++ended >= window) {
        ended = 0;
        window = MAX(window - window / 4, MIN_WINDOW);
    }
}
