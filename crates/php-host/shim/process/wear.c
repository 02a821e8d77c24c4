/* Decides when a worker must be replaced after its request: it has reached its maximum number of requests, has changed
 * state that stays with its process, or is worn.
 *
 * A worker that keeps what its scripts allocate may grow until a request reaches memory_limit, which costs its client a
 * 500. It may also get slower with each request, for example because of a list that each request searches. A fresh
 * worker has neither problem, and no client notices the replacement. */
#include "process/wear.h"

#include "shim.h"
#include "modes/mode.h"
#include "process/changes.h"
#include "sapi/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

/* Number of requests between two queries of the kernel's memory count. */
#define MEMORY_CHECK 16
/* Number of requests whose processor time is measured together. */
#define WINDOW 256
/* Minimum processor time of a window in microseconds, 0.1 ms per request; less is noise. */
#define SHORTEST_WINDOW (WINDOW * 100)
/* Number of consecutive slow windows that is required: one window may have had other pages. */
#define SLOW_WINDOWS 2

/* Returns the memory of this process alone: memory shared with the zygote and with OPcache cannot be its leak. */
static size_t private_memory(void) {
    char text[128];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    unsigned long resident = 0, shared = 0;
    if (sscanf(text, "%*u %lu %lu", &resident, &shared) != 2 || resident < shared) {
        return 0;
    }
    return (resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns the part of memory_limit that may be in use between two requests, without max_memory. */
static size_t default_max_memory(void) {
    const zend_long limit = PG(memory_limit);
    return limit > 0 ? (size_t)limit / 4 * 3 : SIZE_MAX;
}

static bool fills_memory(void) {
    const size_t most = shim.worker->max_memory;
    if (most != 0) {
        /* PHP's own count costs nothing; the kernel's, which includes leaks of libraries, a few microseconds. */
        return zend_memory_usage(true) > most || (shim.requests_done % MEMORY_CHECK == 0 && private_memory() > most);
    }
    if (!shim.mode->keeps_memory || zend_memory_usage(true) <= default_max_memory()) {
        return false;
    }
    /* Freed memory that is cached for the next request is not in use. */
    zend_mm_gc(zend_mm_get_heap());
    if (zend_memory_usage(true) <= default_max_memory()) {
        return false;
    }
    shim_log(LOG_NOTICE, "worker replaced: it keeps %zu of the %zu MiB of memory_limit; max_memory sets another bound",
             zend_memory_usage(true) >> 20, (size_t)PG(memory_limit) >> 20);
    return true;
}

static uint64_t processor_time(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Processor time of the second window, in microseconds: code is loaded in the first one. */
static uint64_t first_window;
static uint64_t window_began;
static unsigned slow_windows;

static bool is_slowing_down(void) {
    const uint64_t number = (shim.requests_done + 1) / WINDOW;
    if (!shim.mode->keeps_memory || (shim.requests_done + 1) % WINDOW != 0) {
        return false;
    }
    const uint64_t now = processor_time(), taken = now - window_began;
    window_began = now;
    if (number <= 2) {
        first_window = taken;
        return false;
    }
    slow_windows = taken > SHORTEST_WINDOW && taken > 2 * first_window ? slow_windows + 1 : 0;
    if (slow_windows < SLOW_WINDOWS) {
        return false;
    }
    shim_log(LOG_NOTICE,
             "worker replaced: a request takes %.1f ms of processor time, and took %.1f ms when the worker was new",
             (double)taken / WINDOW / 1000, (double)first_window / WINDOW / 1000);
    return true;
}

bool shim_used_up(void) {
    const char *changed = shim_changes_left();
    if (changed != NULL) {
        shim_log(LOG_NOTICE, "worker replaced: the script has changed %s, which stays with its process", changed);
        return true;
    }
    if (shim.worker->max_requests != 0 && shim.requests_done + 1 >= shim.worker->max_requests) {
        return true;
    }
    return fills_memory() || is_slowing_down();
}
