#include "async/core/worker.h"

#include "shim.h"

static bool draining;
static bool stopping;
static bool ending;
/* PHP's memory usage in bytes when the worker began to serve. */
static size_t booted_memory;

void async_drain(void) {
    draining = true;
}

bool async_draining(void) {
    return draining;
}

void async_stop(void) {
    stopping = true;
}

bool async_leaving(void) {
    return stopping || draining;
}

void async_end(void) {
    ending = true;
}

bool async_ending(void) {
    return ending;
}

void async_memory_booted(void) {
    booted_memory = zend_memory_usage(true);
    async_set_memory_limit();
}

/* Number of requests of one worker that may use all of memory_limit at the same time. With more of them in flight,
 * PHP's guard against runaway scripts would act too late for the machine. */
#define FULL_SHARES 8

/* PHP counts the memory of the process, not of a request, so the limit is the sum for several requests, plus the
 * application's own memory. Only the request that exceeds it ends. */
void async_set_memory_limit(void) {
    if (PG(memory_limit) <= 0) {
        zend_set_memory_limit((size_t)Z_L(-1) >> 1);
        return;
    }
    size_t shares = MIN(shim.worker->concurrency, FULL_SHARES);
    size_t all;
    if (__builtin_mul_overflow((size_t)PG(memory_limit), shares, &all) ||
        __builtin_add_overflow(all, booted_memory, &all)) {
        all = (size_t)Z_L(-1) >> 1;
    }
    zend_set_memory_limit(all);
}

void async_interrupt(void) {
    SHIM_REQUEST_INTERRUPT();
}
