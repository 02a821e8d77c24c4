/* The clock of async mode, and the timers of waiting coroutines. */
#include "async/core/timers.h"

#include "shim.h"
#include "async/core/coroutine.h"

#include <time.h>

/* In nanoseconds. From this length on, as in waits for a database, the cheaper clock is precise enough. */
#define LONG_WAIT UINT64_C(30000000000)
/* That clock is late by at most one tick of the kernel. */
#define CLOCK_TICK UINT64_C(10000000)

/* The timers: a binary heap, the earliest first. */
static coroutine **heap;
static uint32_t heap_count, heap_size;

static uint64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t async_now(void) {
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t async_about_now(void) {
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t async_after(uint64_t nanoseconds) {
    uint64_t at;
    bool never = nanoseconds < LONG_WAIT ? __builtin_add_overflow(async_now(), nanoseconds, &at)
                                         : __builtin_add_overflow(async_about_now() + CLOCK_TICK, nanoseconds, &at);
    return never ? COROUTINE_FOREVER : at;
}

uint64_t async_until(double seconds, bool forever) {
    if (forever || seconds > 1e9) {
        return COROUTINE_FOREVER;
    }
    return async_after(seconds > 0 ? (uint64_t)(seconds * 1e9) : 0);
}

static void heap_put(uint32_t index, coroutine *self) {
    heap[index] = self;
    self->heap_index = index;
}

static void sift_up(uint32_t index) {
    coroutine *self = heap[index];
    while (index > 0 && heap[(index - 1) / 2]->wake_at > self->wake_at) {
        heap_put(index, heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    heap_put(index, self);
}

static void sift_down(uint32_t index) {
    coroutine *self = heap[index];
    for (;;) {
        uint32_t child = 2 * index + 1;
        if (child + 1 < heap_count && heap[child + 1]->wake_at < heap[child]->wake_at) {
            child++;
        }
        if (child >= heap_count || heap[child]->wake_at >= self->wake_at) {
            break;
        }
        heap_put(index, heap[child]);
        index = child;
    }
    heap_put(index, self);
}

void async_timer_add(coroutine *self) {
    if (heap_count == heap_size) {
        heap_size = heap_size == 0 ? 256 : heap_size * 2;
        heap = perealloc(heap, heap_size * sizeof *heap, 1);
    }
    heap[heap_count] = self;
    sift_up(heap_count++);
}

void async_timer_remove(coroutine *self) {
    uint32_t index = self->heap_index;
    if (index == COROUTINE_NO_TIMER) {
        return;
    }
    self->heap_index = COROUTINE_NO_TIMER;
    coroutine *last = heap[--heap_count];
    if (last != self) {
        heap_put(index, last);
        sift_up(index);
        sift_down(last->heap_index);
    }
}

coroutine *async_timer_earliest(void) {
    return heap_count > 0 ? heap[0] : NULL;
}

void async_timers_shutdown(void) {
    pefree(heap, 1);
    heap = NULL;
    heap_size = 0;
}
