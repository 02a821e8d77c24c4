/* Stacks of coroutines as text: for the log of a deadlock, for errors that name two coroutines, and for pools, which
 * record where each connection was taken (Howdah\Internal\Stack). Pools record all the time and almost never read, so
 * the text is written without asking PHP for a backtrace. */
#include "async/tools/stacks.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/throw.h"
#include "async/core/worker.h"
#include "process/stack_text.h"
#include "sapi/log.h"

#include <syslog.h>
#include <zend_builtin_functions.h>
#include <zend_exceptions.h>
#include <zend_smart_str.h>

/* Maximum number of frames of a recorded stack, and its longest text. */
#define MAX_FRAMES 32
#define MAX_TEXT 3072
/* For each of two stacks in a log line, which has room for 8 KB. */
#define MAX_LOGGED 3500

/* True if pools record all frames, not only the first. */
static bool full_notes;

void async_stacks_startup(void) {
    full_notes = zend_ini_long(ZEND_STRL("howdah.traces"), 0) != 0 || zend_ini_long(ZEND_STRL("howdah.audit"), 0) != 0;
}

/* --- notes --- */

static bool is_user_code(const zend_execute_data *frame) {
    return frame->func != NULL && ZEND_USER_CODE(frame->func->type);
}

/* The library's own frames are hidden. Its files have paths that no real file has (php-host/src/library.rs). */
#define LIBRARY "/howdah:"

static bool is_library(const zend_execute_data *frame) {
    return is_user_code(frame) && strncmp(ZSTR_VAL(frame->func->op_array.filename), LIBRARY, strlen(LIBRARY)) == 0;
}

static zend_string *place_of(const zend_execute_data *frame) {
    while (frame != NULL && (!is_user_code(frame) || is_library(frame))) {
        frame = frame->prev_execute_data;
    }
    if (frame == NULL) {
        return ZSTR_INIT_LITERAL("[internal]", 0);
    }
    const zend_string *file = frame->func->op_array.filename;
    char line[11];
    stack_text out = {line, sizeof line, sizeof line};
    put(&out, ":");
    put_line_number(&out, frame);
    return zend_string_concat2(ZSTR_VAL(file), ZSTR_LEN(file), line, sizeof line - out.room);
}

zend_string *async_place_of(const coroutine *self) {
    return self->frame != NULL ? place_of(self->frame) : ZSTR_INIT_LITERAL("the coroutine's start", 0);
}

/* Formatted like Exception::getTraceAsString(), without arguments. */
static zend_string *stack_of(const zend_execute_data *frame) {
    char buffer[MAX_TEXT];
    stack_text out = {buffer, sizeof buffer, sizeof buffer};
    uint32_t number = 0;
    const zend_function *callee = NULL;
    for (; frame != NULL && number < MAX_FRAMES; frame = frame->prev_execute_data) {
        if (frame->func == NULL) {
            continue;
        }
        bool user = is_user_code(frame);
        if (callee != NULL && !is_library(frame) && (user || ZEND_USER_CODE(callee->type))) {
            put(&out, "#");
            put_number(&out, number++);
            put(&out, " ");
            if (user) {
                put_name(&out, frame->func->op_array.filename);
                put(&out, "(");
                put_line_number(&out, frame);
                put(&out, "): ");
            } else {
                put(&out, "[internal function]: ");
            }
            put_function(&out, callee, "include()");
            put(&out, "\n");
        }
        callee = frame->func;
    }
    put(&out, "#");
    put_number(&out, number);
    put(&out, frame != NULL ? " ..." : " {main}");
    return zend_string_init(buffer, sizeof buffer - out.room, 0);
}

zend_string *async_here(void) {
    const zend_execute_data *frame = EG(current_execute_data);
    return full_notes ? stack_of(frame) : place_of(frame);
}

PHP_METHOD(Howdah_Internal_Stack, here) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_STR(async_here());
}

PHP_METHOD(Howdah_Internal_Stack, full) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_STR(stack_of(execute_data));
}

/* --- stacks of coroutines --- */

zend_string *async_stack_of(const coroutine *self) {
    zval frames;
    zend_execute_data *here = EG(current_execute_data);
    if (self->state != COROUTINE_RUNNING) {
        EG(current_execute_data) = self->frame;
    }
    zend_fetch_debug_backtrace(&frames, 0, DEBUG_BACKTRACE_IGNORE_ARGS, 0);
    EG(current_execute_data) = here;
    zend_string *trace = zend_trace_to_string(Z_ARRVAL(frames), true);
    zval_ptr_dtor(&frames);
    return trace;
}

static void log_text(smart_str *line) {
    smart_str_0(line);
    shim_log_line(LOG_ERR, ZSTR_VAL(line->s), ZSTR_LEN(line->s));
    smart_str_free(line);
}

static void append_stack(smart_str *line, const zend_string *trace) {
    smart_str_appendl(line, ZSTR_VAL(trace), MIN(ZSTR_LEN(trace), MAX_LOGGED));
}

/* --- one connection, two coroutines --- */

static void log_both(const char *message, uint64_t other, const zend_string *others_stack) {
    zend_string *own_stack = async_stack_of(coroutine_current);
    smart_str line = {0};
    smart_str_append_printf(&line, "%s\nThis coroutine (%llu):\n", message, (unsigned long long)coroutine_current->id);
    append_stack(&line, own_stack);
    smart_str_append_printf(&line, "\nThe other one (%llu), which has the connection:\n", (unsigned long long)other);
    append_stack(&line, others_stack);
    log_text(&line);
    zend_string_release(own_stack);
}

static void throw_concurrent_use(const char *message, zend_string *others_stack) {
    async_throw("ConcurrentUseError", message);
    if (EG(exception) != NULL) {
        zend_update_property_str(EG(exception)->ce, EG(exception), ZEND_STRL("other"), others_stack);
    }
}

void async_refuse_concurrent_use(const char *message, const coroutine *other) {
    zend_string *others_stack = async_stack_of(other);
    log_both(message, other->id, others_stack);
    throw_concurrent_use(message, others_stack);
    zend_string_release(others_stack);
}

static const char stream_taken[] = "Another coroutine is waiting for an answer on the same connection";

void async_stream_taken(const coroutine *other) {
    coroutine *self = coroutine_current;
    self->concurrent_use = true;
    if (self->others_stack == NULL) {
        self->others_stack = async_stack_of(other);
        log_both(stream_taken, other->id, self->others_stack);
    }
    async_interrupt();
}

void async_throw_stream_taken(void) {
    zend_string *others_stack = coroutine_current->others_stack;
    coroutine_current->concurrent_use = false;
    coroutine_current->others_stack = NULL;
    throw_concurrent_use(stream_taken, others_stack);
    zend_string_release(others_stack);
}

/* --- deadlock --- */

static void log_stack(const coroutine *self) {
    zend_string *trace = async_stack_of(self);
    smart_str line = {0};
    smart_str_append_printf(&line, "coroutine %llu waits (%s):\n", (unsigned long long)self->id, self->waits_for);
    append_stack(&line, trace);
    log_text(&line);
    zend_string_release(trace);
}

void async_report_deadlock(void) {
    shim_log(LOG_ERR, "deadlock: %u coroutines wait for each other", coroutine_count());
    for (coroutine *self = coroutine_youngest(); self != NULL; self = self->older) {
        log_stack(self);
    }
    for (coroutine *self = coroutine_youngest(); self != NULL; self = self->older) {
        if (self->may_be_failed) {
            self->deadlocked = true;
            coroutine_wake(self, COROUTINE_WOKEN);
        }
    }
}

/* --- Howdah\Internal\Stack --- */

ZEND_BEGIN_ARG_INFO_EX(arginfo_none, 0, 0, 0)
ZEND_END_ARG_INFO()

/* clang-format off */
static const zend_function_entry methods[] = {
    PHP_ME(Howdah_Internal_Stack, here, arginfo_none, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_ME(Howdah_Internal_Stack, full, arginfo_none, ZEND_ACC_PUBLIC | ZEND_ACC_STATIC)
    PHP_FE_END
};
/* clang-format on */

void async_stacks_class_startup(void) {
    zend_class_entry entry;
    INIT_NS_CLASS_ENTRY(entry, "Howdah\\Internal", "Stack", methods);
    zend_class_entry *stack = zend_register_internal_class(&entry);
    stack->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES;
}
