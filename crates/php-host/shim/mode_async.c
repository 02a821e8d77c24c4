/* Async mode: the worker script of worker mode, but its handler runs for many requests at once, each in a coroutine.
 * While one waits for a database, another server or a clock, the others run. frankenphp_handle_request() does not
 * return between requests; it returns false when the server has no more.
 *
 * The hooks that make blocking calls wait are installed here, after the fork: no other mode's process has them. */
#include "async.h"
#include "worker_loop.h"

#include <stdlib.h>
#include <syslog.h>
#include <sys/stat.h>
#include <unistd.h>

bool async_serving;
static bool draining;
static bool stopping;
static bool ending;
/* What the process used when it began to serve. */
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
        const WireCall *call = NULL;
        uint64_t number = 0;
        unsigned reason = 0;
        switch (howdah_rs_take_event(&call, &number, &reason)) {
        case HOWDAH_EVENT_CALL:
            if (!async_request_start(call, number)) {
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

bool async_serve(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    if (async_serving || shim.script_child || !shim_loop_booting()) {
        return false;
    }
    shim_loop_boot_end();
    if (!async_loop_startup()) {
        shim_log(LOG_CRIT, "cannot make an epoll descriptor; the worker ends");
        shim_loop_leave();
        return false;
    }
    startup();
    async_request_handler(function, cache);
    async_serving = true;
    howdah_rs_ready();
    async_loop_run(finished);
    end_detached();
    async_loop_run(none_left);
    async_serving = false;
    async_request_load(NULL);
    async_guard_shutdown();
    zend_interrupt_function = original_interrupt;
    async_loop_shutdown();
    shim_loop_leave();
    return false;
}

/* --- the library --- */

typedef struct library_file {
    php_stream stream;
    uint64_t changed;
    size_t length;
} library_file;

static int library_stat(php_stream *stream, php_stream_statbuf *status) {
    const library_file *file = (const library_file *)stream;
    memset(status, 0, sizeof *status);
    status->sb.st_mode = S_IFREG | 0444;
    status->sb.st_size = (off_t)file->length;
    status->sb.st_mtime = (time_t)file->changed;
    return 0;
}

static const php_stream_ops library_ops = {.label = "howdah library", .stat = library_stat};

/* Runs a text as PHP would run a file of this path. With OPcache one worker compiles it and the others find it in
 * shared memory: what OPcache asks about a file is its path and its time, and only this stream knows that there is
 * none. */
static bool run_library_file(const char *path, const char *text, size_t length, uint64_t changed) {
    library_file source = {.stream = {.ops = &library_ops}, .changed = changed, .length = length};
    zend_file_handle file;
    zend_string *name = zend_string_init(path, strlen(path), 0);
    zend_stream_init_filename_ex(&file, name);
    file.type = ZEND_HANDLE_STREAM;
    memset(&file.handle, 0, sizeof file.handle);
    file.handle.stream.handle = &source;
    file.opened_path = zend_string_copy(name);
    file.buf = emalloc(length + ZEND_MMAP_AHEAD);
    memcpy(file.buf, text, length);
    memset(file.buf + length, 0, ZEND_MMAP_AHEAD);
    file.len = length;
    bool done = zend_execute_scripts(ZEND_REQUIRE, NULL, 1, &file) == SUCCESS && EG(exception) == NULL;
    zend_destroy_file_handle(&file);
    /* The application's first file is the worker script. */
    zend_hash_del(&EG(included_files), name);
    zend_string_release(name);
    return done;
}

/* The classes and functions of the namespace Howdah that are written in PHP, before the worker script and in the same
 * request of PHP. False: the build is broken, PHP has logged why. */
static bool run_library(void) {
    const char *path, *text;
    size_t length;
    uint64_t changed;
    for (size_t i = 0; howdah_rs_library(i, &path, &text, &length, &changed); i++) {
        if (!run_library_file(path, text, length, changed)) {
            shim_log(LOG_CRIT, "%s does not compile", path);
            return false;
        }
    }
    return true;
}

SHIM_EXPORT void howdah_c_compile_library(void) {
    /* A worker says what is wrong with the script; its request is what the library would be compiled in. */
    if (access(shim.worker->script, R_OK) != 0) {
        return;
    }
    zend_first_try {
        if (shim_loop_open_script(shim.worker->script)) {
            run_library();
        }
    }
    zend_end_try();
}

static shim_outcome run(void) {
    if (!shim_loop_open_script(shim.worker->script) || !run_library()) {
        return SHIM_RETIRE;
    }
    shim_loop_execute_script(shim.worker->script);
    return SHIM_RETIRE;
}

const shim_mode shim_mode_async = {
    .name = "async",
    .resident = true,
    .concurrent = true,
    .run = run,
    .after = shim_loop_close_script,
};
