/* Parts of PHP that must not be interrupted by another coroutine, and fatal errors, which must not affect other
 * requests. Each is a function pointer that PHP offers to extensions. */
#include "async/isolation/non_preemptible.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/worker.h"
#include "async/isolation/exclusive_connections.h"

#include <zend_gc.h>

static zend_op_array *(*original_compile_file)(zend_file_handle *file, int type);
static zend_op_array *(*original_compile_string)(zend_string *source, const char *filename,
                                                 zend_compile_position position);
static zend_class_entry *(*original_autoload)(zend_string *name, zend_string *lc_name);
static int (*original_collect)(void);
static void (*original_error)(int type, zend_string *file, const uint32_t line, zend_string *message);

/* The compiler and OPcache's lock do not support a second user in the same process. */
static zend_op_array *compile_pinned(zend_file_handle *file, int type) {
    coroutine_pinned++;
    zend_op_array *compiled = original_compile_file(file, type);
    coroutine_pinned--;
    return compiled;
}

/* Code of eval(): the compiler may call an error handler. */
static zend_op_array *compile_string_pinned(zend_string *source, const char *filename, zend_compile_position position) {
    coroutine_pinned++;
    zend_op_array *compiled = original_compile_string(source, filename, position);
    coroutine_pinned--;
    return compiled;
}

/* A second coroutine that needs a class while the first one's autoloader waits would not find the class. */
static zend_class_entry *autoload(zend_string *name, zend_string *lc_name) {
    coroutine_pinned++;
    zend_class_entry *found = original_autoload(name, lc_name);
    coroutine_pinned--;
    return found;
}

/* The collector's lists must not change while it runs. */
static int collect(void) {
    coroutine_pinned++;
    int collected = original_collect();
    coroutine_pinned--;
    return collected;
}

/* At a fatal error, PHP marks all objects of the process as destructed, including those of other requests. So PHP only
 * reports the error here, and the bailout that ends this coroutine's code is ours. */
static void report_error(int type, zend_string *file, const uint32_t line, zend_string *message) {
    const int fatal = E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR | E_PARSE;
    if (coroutine_current == NULL || (type & fatal) == 0 || (type & E_DONT_BAIL) != 0) {
        original_error(type, file, line, message);
        return;
    }
    original_error(type | E_DONT_BAIL, file, line, message);
    async_set_memory_limit();
    zend_bailout();
}

/* Functions that keep their state in PHP's own variables while they call scripts: a comparison, a buffer's callback, an
 * error handler. */
static const char *const pinned_functions[] = {
    "array_multisort",  /* comparison state */
    "highlight_string", /* the scanner of code */
    "highlight_file",   "show_source",      "php_strip_whitespace",
    "token_get_all",    "parse_ini_string", /* the scanner of settings */
    "parse_ini_file",
};

static ZEND_NAMED_FUNCTION(call_pinned) {
    coroutine_pinned++;
    async_wrapped(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    coroutine_pinned--;
}

void async_guard_install(void) {
    for (size_t i = 0; i < sizeof pinned_functions / sizeof *pinned_functions; i++) {
        zend_function *function =
            zend_hash_str_find_ptr(CG(function_table), pinned_functions[i], strlen(pinned_functions[i]));
        if (function != NULL) {
            async_wrap(function, call_pinned);
        }
    }
}

void async_guard_startup(void) {
    original_compile_file = zend_compile_file;
    zend_compile_file = compile_pinned;
    original_compile_string = zend_compile_string;
    zend_compile_string = compile_string_pinned;
    original_autoload = zend_autoload;
    if (original_autoload != NULL) {
        zend_autoload = autoload;
    }
    original_collect = gc_collect_cycles;
    gc_collect_cycles = collect;
    original_error = zend_error_cb;
    zend_error_cb = report_error;
}

void async_guard_shutdown(void) {
    zend_compile_file = original_compile_file;
    zend_compile_string = original_compile_string;
    if (original_autoload != NULL) {
        zend_autoload = original_autoload;
    }
    gc_collect_cycles = original_collect;
    zend_error_cb = original_error;
}
