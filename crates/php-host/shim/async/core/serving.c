/* Serving in a worker that runs many requests at once: what the server sends, cancellation, the limit of memory, and
 * the end. The hooks that make blocking calls wait are installed here, after the fork: no process of another mode has
 * them. */
#include "async/core/serving.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/coroutine_class.h"
#include "async/core/coroutine_state.h"
#include "async/core/loop.h"
#include "async/core/request.h"
#include "async/hooks/hooks.h"
#include "async/isolation/ini.h"
#include "async/isolation/non_preemptible.h"
#include "async/isolation/request_globals.h"
#include "async/tools/audit.h"
#include "async/tools/stacks.h"
#include "async/tools/time_slice.h"
#include "modes/script_loop.h"
#include "sapi/log.h"

#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>

static bool draining;
static bool stopping;
static bool ending;
/* Memory of the process when it began to serve. */
static size_t booted_memory;

static void (*original_interrupt)(zend_execute_data *execute_data);

void async_drain(void) {
    draining = true;
}

bool async_ending(void) {
    return ending;
}

bool async_draining(void) {
    return draining;
}

/* Requests of one worker that may use all of memory_limit at the same time. With more of them in flight PHP's guard
 * against a script that runs away would come too late for the machine. */
#define FULL_SHARES 8

/* PHP counts the memory of the process, not of a request: the limit is that of some requests together, on top of what
 * the application itself needs. The one that runs into it ends alone. */
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

/* --- cancellation --- */

void async_interrupt(void) {
    SHIM_REQUEST_INTERRUPT();
}

/* Between two instructions of PHP code: the one place where an exception may be thrown from outside. */
static void interrupt(zend_execute_data *execute_data) {
    if (original_interrupt != NULL) {
        original_interrupt(execute_data);
    }
    if (coroutine_current == NULL || EG(exception) != NULL) {
        return;
    }
    async_slice_check();
    coroutine *self = coroutine_current;
    if (self->concurrent_use) {
        async_throw_stream_taken();
    } else if (self->cancelled && !self->cancel_thrown && self->shields == 0) {
        self->cancel_thrown = true;
        async_throw("CancelledException",
                    self->cancel_reason != NULL ? ZSTR_VAL(self->cancel_reason) : "The coroutine was cancelled");
    }
}

/* --- serving --- */

static bool finished(void) {
    return (stopping || draining) && async_request_count() == 0;
}

void async_take_events(void) {
    for (;;) {
        const WireRequest *encoded = NULL;
        uint64_t number = 0;
        unsigned reason = 0;
        switch (howdah_rs_take_event(&encoded, &number, &reason)) {
        case HOWDAH_EVENT_REQUEST:
            if (!async_request_start(encoded, number)) {
                shim_log(LOG_CRIT, "no memory for another request; the worker ends");
                _exit(EXIT_FAILURE);
            }
            break;
        case HOWDAH_EVENT_CANCEL:
            /* A client that has gone is noticed as in every mode: when the script prints, see shim_sapi_write(). Work
             * that has begun is not torn apart for it. */
            if (reason == CANCEL_DEADLINE) {
                async_request_cancel(number, "The request's deadline is over");
            }
            break;
        case HOWDAH_EVENT_STOP:
            stopping = true;
            break;
        default:
            return;
        }
    }
}

/* Coroutines that belong to no request end with the worker, and so does what they start in their last moments. */
static void end_detached(void) {
    ending = true;
    for (coroutine *self = coroutine_youngest(); self != NULL; self = self->older) {
        coroutine_cancel(self, NULL);
    }
}

static bool none_left(void) {
    return coroutine_count() == 0;
}

static void startup(void) {
    async_ini_startup();
    async_image_startup();
    coroutine_state_startup();
    async_guard_startup();
    async_hooks_install();
    async_slice_startup();
    async_audit_startup();
    async_stacks_startup();
    original_interrupt = zend_interrupt_function;
    zend_interrupt_function = interrupt;
    booted_memory = zend_memory_usage(true);
    async_set_memory_limit();
    zend_unset_timeout();
}

void async_serve(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    if (!async_loop_startup()) {
        shim_log(LOG_CRIT, "cannot make an epoll descriptor; the worker ends");
        return;
    }
    startup();
    async_request_handler(function, cache);
    shim_loop_hand_over();
    howdah_rs_ready();
    async_loop_run(finished);
    end_detached();
    async_loop_run(none_left);
    async_request_load(NULL);
    async_guard_shutdown();
    zend_interrupt_function = original_interrupt;
    async_loop_shutdown();
}
