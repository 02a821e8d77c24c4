/* Serving in a worker that runs many requests at once: events from the server, cancellation, and the end. The hooks for
 * blocking calls are installed here, after the fork, so no process of another mode has them. */
#include "async/core/serving.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/coroutine_state.h"
#include "async/core/loop.h"
#include "async/core/questions.h"
#include "async/core/request.h"
#include "async/core/throw.h"
#include "async/core/websocket_connection.h"
#include "async/core/worker.h"
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

/* The server was asked to end the held connections. */
static bool left;

static void (*original_interrupt)(zend_execute_data *execute_data);

/* --- cancellation --- */

/* Called between two instructions of PHP code: the only point where an exception may be thrown from outside. */
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

/* Called in each turn of the loop, so it also asks the server to end held connections, which takes time. */
static bool finished(void) {
    if (async_leaving() && !left) {
        left = true;
        websocket_connections_leave();
    }
    return async_leaving() && async_request_count() == 0;
}

/* Handles events from the server: new requests, cancellations, the end. */
static void take_events(void) {
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
            /* A client's disconnect is noticed as in every mode: when the script prints, see shim_sapi_write(). Work
             * that has begun is not interrupted for it. */
            if (reason == CANCEL_DEADLINE) {
                async_request_cancel(number, "The request's deadline has passed");
            }
            break;
        case HOWDAH_EVENT_STOP:
            async_stop();
            break;
        case HOWDAH_EVENT_TEXT:
            async_question_answered((int)number);
            break;
        default:
            return;
        }
    }
}

/* Ends coroutines that belong to no request, and those that they start in the meantime. */
static void end_detached(void) {
    async_end();
    for (coroutine *self = coroutine_youngest(); self != NULL; self = self->older) {
        coroutine_cancel(self, NULL);
    }
}

static bool is_idle(void) {
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
    async_memory_booted();
    zend_unset_timeout();
}

void async_serve(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    if (!async_loop_startup()) {
        shim_log(LOG_CRIT, "cannot create an epoll descriptor; the worker ends");
        return;
    }
    startup();
    async_request_handler(function, cache);
    shim_loop_hand_over();
    howdah_rs_ready();
    async_loop_run(finished, take_events);
    end_detached();
    async_loop_run(is_idle, take_events);
    async_request_load(NULL);
    async_guard_shutdown();
    zend_interrupt_function = original_interrupt;
    async_loop_shutdown();
}
