/* Async mode: the worker script of worker mode, but its handler runs for many requests at once, each in a coroutine.
 * While one waits for a database, another server or a clock, the others run. frankenphp_handle_request() does not
 * return between requests; it returns false when the server has no more. */
#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/request.h"
#include "async/core/serving.h"
#include "async/isolation/exclusive_connections.h"
#include "modes/mode.h"
#include "modes/modes.h"
#include "modes/run.h"
#include "modes/script_loop.h"
#include "sapi/log.h"
#include "sapi/server_array.h"

#include <string.h>
#include <syslog.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* --- serving --- */

static shim_outcome run(void) {
    coroutine_available = true;
    if (!shim_loop_open_script(shim.worker->script) || !run_library()) {
        return SHIM_RETIRE;
    }
    shim_loop_execute_script(shim.worker->script);
    return SHIM_RETIRE;
}

static int work(void) {
    return shim_run_script(run, shim_loop_close_script);
}

/* A process that a script forked takes no requests; a script that was served once has had its turn. */
static bool serve(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    if (!shim.script_child && shim_loop_booting()) {
        shim_loop_boot_end();
        async_serve(function, cache);
        shim_loop_leave();
    }
    return false;
}

const shim_mode shim_mode_async = {
    .name = "async",
    /* The just-in-time compiler has not been proven with many stacks. */
    .ini = SHIM_LOOP_INI "opcache.jit=disable\n",
    .kept_server_arrays = SHIM_KEPT_SERVER_ARRAYS,
    .after_php = async_exclusive_install,
    .work = work,
    .serve = serve,
    .takes_output = async_output_to_main,
    .unsent_output = shim_loop_unsent_output,
    .client_gone = shim_loop_client_gone,
};
