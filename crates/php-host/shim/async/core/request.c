/* A request in async mode, from its arrival to the report that it is done. It runs in its own coroutine, its globals
 * are installed whenever one of its coroutines runs (async/isolation/request_globals.c), and it ends when all of them
 * have ended.
 *
 * The steps are those of worker mode (modes/script_loop.h); each is guarded, so that after a fatal error in the script
 * the client still gets its response and the session is written. */
#include "async/core/request.h"

#include "shim.h"
#include "async/core/admission.h"
#include "async/core/coroutine.h"
#include "async/core/coroutine_class.h"
#include "async/core/coroutine_state.h"
#include "async/core/worker.h"
#include "async/isolation/request_globals.h"
#include "async/pools/pools.h"
#include "async/tools/audit.h"
#include "modes/request_start.h"
#include "modes/reset.h"
#include "modes/script_loop.h"
#include "process/wear.h"
#include "sapi/current_request.h"
#include "sapi/error_page.h"
#include "sapi/log.h"

#include <ext/standard/basic_functions.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

static zend_fcall_info handler;
static zend_fcall_info_cache handler_cache;
static uint32_t requests;
/* Ends the connections that a request holds; NULL before the class is there. */
static void (*end_connections)(const async_request *request, bool failed);

/* Maximum number of ended requests that are kept for reuse. */
#define IDLE_REQUESTS 256
static async_request *idle_requests;
static uint32_t idle_count;

static async_request *take_request(void) {
    async_request *request = idle_requests;
    if (request != NULL) {
        idle_requests = request->next;
        idle_count--;
    } else {
        request = malloc(sizeof *request + async_image_size());
    }
    if (request != NULL) {
        /* The image is written before it is read. */
        memset(request, 0, sizeof *request);
    }
    return request;
}

static void recycle_request(async_request *request) {
    if (idle_count >= IDLE_REQUESTS) {
        free(request);
        return;
    }
    request->next = idle_requests;
    idle_requests = request;
    idle_count++;
}

void async_request_handler(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    handler = *function;
    handler_cache = *cache;
}

uint32_t async_request_count(void) {
    return requests;
}

static void open_request(void *request) {
    (void)request;
    shim_request_start();
}

static void run_handler(void *request) {
    (void)request;
    zend_fcall_info function = handler;
    zend_fcall_info_cache cache = handler_cache;
    zval result;
    ZVAL_UNDEF(&result);
    function.retval = &result;
    function.param_count = 0;
    zend_call_function(&function, &cache);
    zval_ptr_dtor(&result);
    async_exit_or_report();
}

static void run_shutdown_functions(void *request) {
    (void)request;
    php_call_shutdown_functions();
    php_free_shutdown_functions();
    async_exit_or_report();
}

static void call_at_end(void *list) {
    async_call_list(list);
    async_exit_or_report();
}

static void call_functions(zval *list) {
    if (Z_TYPE_P(list) != IS_UNDEF) {
        coroutine_guarded(call_at_end, list);
    }
}

static void respond(void *request) {
    (void)request;
    shim_error_page_send();
    php_output_end_all();
    async_exit_or_report();
    shim_reset_session_close();
    async_exit_or_report();
    php_header();
    shim_response_end(false);
}

/* Runs before the request is done, so that errors of connection pools are logged for this request. */
static void return_connections(void *self) {
    async_pools_come_back(self);
}

static void release_request(void *request) {
    (void)request;
    shim_loop_put_away();
}

static void destroy_globals(void *unused) {
    (void)unused;
    async_image_destroy();
}

static int end_global_object(zval *value) {
    if (Z_TYPE_P(value) == IS_REFERENCE && Z_REFCOUNT_P(value) == 1) {
        value = Z_REFVAL_P(value);
    }
    return Z_TYPE_P(value) == IS_OBJECT && Z_REFCOUNT_P(value) == 1 ? ZEND_HASH_APPLY_REMOVE : ZEND_HASH_APPLY_KEEP;
}

/* Destroys objects that only a global variable holds, while their output still reaches the client, as at the end of a
 * script; also those in a reference left by `global $x`. Their destructors may create more globals. */
static void destroy_global_objects(void *unused) {
    (void)unused;
    zend_hash_reverse_apply(&EG(symbol_table), end_global_object);
    async_exit_or_report();
}

/* Waits for the request's other coroutines, which use its globals and its client. */
static void wait_for_others(async_request *request) {
    while (request->coroutines > 1) {
        request->main_waits_for_others = true;
        coroutine_current->waits_for_php = true;
        if (coroutine_wait(COROUTINE_FOREVER, "the request's other coroutines") == COROUTINE_CANCELLED) {
            /* At a deadline they have been cancelled as well; this coroutine waits for them to finish in any case. */
            coroutine_current->shields++;
        }
    }
    request->main_waits_for_others = false;
}

static void finish(void) {
    bool retire = async_draining() || shim_used_up();
    if (retire) {
        async_drain();
    }
    coroutine_guarded(destroy_globals, NULL);
    shim_request_finish(retire);
    async_image_drop();
    requests--;
}

static void request_body(coroutine *self) {
    async_request *request = self->request;
    async_audit_begin(requests == 1);
    bool failed = coroutine_guarded(open_request, request) && !coroutine_guarded(run_handler, request);
    /* However the handler has ended, the remaining steps are not interrupted. */
    bool cancelled = self->cancelled;
    call_functions(&self->at_end);
    if (cancelled && self->shields == 0) {
        self->shields++;
    }
    wait_for_others(request);
    if (BG(user_shutdown_function_names) != NULL) {
        coroutine_guarded(run_shutdown_functions, request);
    }
    coroutine_guarded(destroy_global_objects, NULL);
    coroutine_guarded(respond, request);
    call_functions(&request->after_response);
    wait_for_others(request);
    async_audit_end();
    if (end_connections != NULL) {
        end_connections(request, failed);
    }
    coroutine_guarded(return_connections, self);
    coroutine_guarded(release_request, request);
    finish();
    self->request = NULL;
    if (!request->stays) {
        async_admission_ended(request);
    }
    recycle_request(request);
}

bool async_request_start(const WireRequest *encoded, uint64_t number) {
    async_request *request = take_request();
    if (request == NULL) {
        return false;
    }
    request->number = number;
    request->encoded = encoded;
    requests++;
    async_admission_add(request);
    return true;
}

void async_request_begin(async_request *request) {
    request->main = coroutine_start(request_body, request);
    if (request->main == NULL) {
        shim_log(LOG_CRIT, "no memory for another request; the worker ends");
        _exit(EXIT_FAILURE);
    }
    request->coroutines = 1;
    async_audit_overlap();
}

void async_request_ends_connections(void (*end)(const async_request *request, bool failed)) {
    end_connections = end;
}

void async_request_stays(async_request *request) {
    if (!request->stays) {
        request->stays = true;
        async_admission_ended(request);
    }
}

bool async_output_to_main(const char *data, size_t length) {
    coroutine *self = coroutine_current;
    coroutine *receiver = self != NULL && self->request != NULL ? self->request->main : NULL;
    if (receiver == NULL || receiver == self || self->prints_for_main || receiver->state == COROUTINE_RUNNING) {
        return false;
    }
    /* The main coroutine waits: its buffers are in its image. */
    self->prints_for_main = true;
    bool taken = coroutine_state_print(receiver->engine, data, length);
    self->prints_for_main = false;
    return taken;
}

void async_request_cancel(uint64_t number, const char *reason) {
    async_admission_begin_at_once(number);
    zend_string *text = zend_string_init(reason, strlen(reason), 0);
    for (coroutine *self = coroutine_youngest(); self != NULL; self = self->older) {
        if (self->request != NULL && self->request->number == number) {
            coroutine_cancel(self, text);
        }
    }
    zend_string_release(text);
}
