/* When requests begin. What has begun goes on first, and of requests that wait for something short only some are under
 * way at the same time: a request that begins, asks a database on the same machine and gets its answer at once finds
 * its memory in the caches, where five hundred that all begin and then wait for their turn find it cold, in this
 * process and in the database's.
 *
 * So there is a window: so many requests may have begun and not ended. It says nothing of those that wait for long.
 * Whenever the worker has had nothing to do for PATIENCE although requests want to begin, those that are under way no
 * longer count, and the window doubles, unless so many requests have ended since the last pause that these are not
 * slow, but wait for a processor, like the database. It shrinks when as many requests as it has places end without such
 * a pause while others want to begin. */
#include "async/core/admission.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/timers.h"
#include "async/core/request.h"

#define FEWEST 8
/* Requests that end between two pauses, for each place of the window, if they are short. */
#define MOVING 2
/* Nanoseconds: a database on the same machine answers in less. */
#define PATIENCE UINT64_C(200000)
/* Handlers that compute, and give way to each other, leave no pause: if none ends for so long, all others begin. */
#define STANDSTILL UINT64_C(10000000)

static async_request *first, *last;
static uint32_t window = FEWEST;
/* Begun and not ended since the last pause, and how many of these have ended. */
static uint32_t running, ended;
static uint32_t pauses;
/* All that have ended since then. */
static uint64_t moved;
/* Since when requests want to begin and none ends; 0: they do not, or one has ended since the last turn. */
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
        window = MAX(MIN(window * 2, async_request_count()), FEWEST);
    }
    moved = 0;
}

void async_admission_look(void) {
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

uint64_t async_admission_patience(void) {
    return async_after(PATIENCE);
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
        window = MAX(window - window / 4, FEWEST);
    }
}
