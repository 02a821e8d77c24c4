/* The scheduler of async mode: runs ready coroutines, takes requests from the server, and sleeps in epoll until a
 * descriptor (descriptors.c), a timer or the server wakes it. */
#include "async/core/loop.h"

#include "shim.h"
#include "async/core/admission.h"
#include "async/core/coroutine.h"
#include "async/core/descriptors.h"
#include "async/core/timers.h"
#include "async/pools/numbers.h"
#include "async/tools/audit.h"
#include "async/tools/stacks.h"
#include "async/tools/time_slice.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Maximum number of coroutines that run between two checks for events and requests. */
#define TURN 64
#define EVENTS 128
/* Number of simultaneous coroutines above which returning their memory is worthwhile. */
#define CROWD 512
/* Time after which a deadlock of all coroutines is reported. */
#define DEADLOCK_AFTER UINT64_C(1000000000)
/* The server's descriptor in epoll events; no real one is that high. */
#define SERVER_EVENT UINT32_MAX

static int epoll_fd = -1;

static void expire_timers(void) {
    coroutine *earliest = async_timer_earliest();
    if (earliest == NULL) {
        return;
    }
    uint64_t now = async_now();
    for (; earliest != NULL && earliest->wake_at <= now; earliest = async_timer_earliest()) {
        coroutine_wake(earliest, COROUTINE_TIMED_OUT);
    }
}

bool async_loop_startup(void) {
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    async_descriptors_startup(epoll_fd);
    /* Edge-triggered and never read: each write is an edge. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = SERVER_EVENT};
    return epoll_fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, howdah_rs_wake_fd(), &event) == 0;
}

void async_loop_shutdown(void) {
    close(epoll_fd);
    epoll_fd = -1;
    async_descriptors_shutdown();
    async_timers_shutdown();
    coroutine_trim();
}

static int wait_in_kernel(struct epoll_event *events, uint64_t until) {
    struct timespec time = {0, 0};
    if (until != 0 && until != COROUTINE_FOREVER) {
        uint64_t now = async_now();
        uint64_t left = until > now ? until - now : 0;
        time.tv_sec = (time_t)(left / UINT64_C(1000000000));
        time.tv_nsec = (long)(left % UINT64_C(1000000000));
    }
    static bool coarse;
    if (!coarse) {
        int seen = epoll_pwait2(epoll_fd, events, EVENTS, until == COROUTINE_FOREVER ? NULL : &time, NULL);
        if (seen >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return seen;
        }
        /* Before Linux 5.11, or in a sandbox that does not know the call: timeouts are rounded up to milliseconds. */
        coarse = true;
    }
    uint64_t milliseconds = (uint64_t)time.tv_sec * 1000 + ((uint64_t)time.tv_nsec + 999999) / 1000000;
    return epoll_wait(epoll_fd, events, EVENTS,
                      until == COROUTINE_FOREVER ? -1 : (int)MIN(milliseconds, (uint64_t)INT_MAX));
}

/* Handles events; sleeps at most until `until` (0: not at all). */
static int poll_events(uint64_t until) {
    struct epoll_event events[EVENTS];
    int seen = wait_in_kernel(events, until);
    for (int i = 0; i < seen; i++) {
        if (events[i].data.u32 != SERVER_EVENT) {
            async_deliver((int)events[i].data.u32, events[i].events);
        }
    }
    return seen;
}

/* Waits although requests are queued, because those in progress come first: until their answers arrive, or PAUSE_LENGTH
 * shows that they are slow. */
static void rest(void) {
    uint64_t until = async_admission_pause_until();
    async_pools_publish();
    howdah_rs_publish();
    coroutine *earliest = async_timer_earliest();
    if (poll_events(earliest != NULL ? MIN(earliest->wake_at, until) : until) == 0 && async_now() >= until) {
        async_admission_pause();
    }
}

static coroutine *next(void) {
    coroutine *self = coroutine_take_ready();
    return self != NULL || !async_admission_next() ? self : coroutine_take_ready();
}

/* True if every coroutine waits for something that only PHP code could do, and no coroutine can run. */
static bool is_deadlocked(void) {
    coroutine *self = coroutine_youngest();
    if (self == NULL || async_timer_earliest() != NULL) {
        return false;
    }
    for (; self != NULL; self = self->older) {
        if (self->state != COROUTINE_WAITING || !self->waits_for_php) {
            return false;
        }
    }
    return true;
}

/* After a peak of coroutines, returns their memory to the kernel; the memory of a few is kept for the next. */
static void release_memory(void) {
    static uint32_t most;
    if (coroutine_count() > most) {
        most = coroutine_count();
    } else if (most > CROWD && coroutine_count() < most / 8) {
        most = coroutine_count();
        zend_mm_gc(zend_mm_get_heap());
        malloc_trim(0);
    }
}

static void wait_for_event(void) {
    release_memory();
    async_pools_publish();
    if (!howdah_rs_prepare_wait()) {
        return;
    }
    bool deadlock = is_deadlocked();
    coroutine *earliest = async_timer_earliest();
    uint64_t until = earliest != NULL ? earliest->wake_at : deadlock ? async_after(DEADLOCK_AFTER) : COROUTINE_FOREVER;
    poll_events(until);
    howdah_rs_woken();
    /* Another request might have woken them, but none has arrived. */
    if (deadlock && is_deadlocked() && async_now() >= until) {
        async_report_deadlock();
    }
}

void async_loop_run(bool (*finished)(void), void (*take_events)(void)) {
    while (!finished()) {
        take_events();
        async_admission_check();
        async_admission_next();
        async_slice_begin_turn();
        coroutine *self;
        for (int i = 0; i < TURN && !async_slice_ends_turn() && (self = next()) != NULL; i++) {
            async_audit_turn_begin(self);
            async_slice_begin();
            coroutine_enter(self);
            if (shim.script_child) {
                return;
            }
            async_audit_turn_end(self);
        }
        coroutine_trim();
        async_admission admission = async_admission_state();
        if (coroutine_any_ready() || admission == ADMISSION_OPEN) {
            /* Responses must not wait until the worker is idle. */
            howdah_rs_publish();
            async_pools_publish();
            poll_events(0);
        } else if (admission == ADMISSION_FULL) {
            rest();
        } else if (!finished()) {
            wait_for_event();
        }
        expire_timers();
    }
    async_pools_publish();
    howdah_rs_publish();
}
