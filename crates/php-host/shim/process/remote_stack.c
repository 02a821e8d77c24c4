/* Reads the PHP stacks of a worker, in its zygote. The worker's memory is read through a descriptor (/proc/PID/mem), so
 * the worker does not notice: no signal, no page written, no system call interrupted.
 *
 * The worker was forked from the zygote after PHP's start, so everything outside of a heap has the same address in
 * both. The data may be half written, or anything that a script has put there. So each address is only ever passed to
 * pread(), which fails where nothing is mapped, and each length and each chain is bounded. */
#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/request.h"

#if SHIM_WITH_PDO
#include <ext/pdo/php_pdo_driver.h>
#endif

#include <string.h>
#include <unistd.h>

/* A longer chain is treated as corrupt. */
#define MAX_LINKS 4096
#define MAX_COROUTINES 20000

static bool get(int memory, const void *from, void *to, size_t size) {
    return from != NULL && pread(memory, to, size, (off_t)(uintptr_t)from) == (ssize_t)size;
}

/* Reads as many bytes as are mapped. */
static size_t get_some(int memory, const char *from, char *to, size_t size) {
    ssize_t got = pread(memory, to, size, (off_t)(uintptr_t)from);
    return got > 0 ? (size_t)got : 0;
}

/* A cache of the pages read by one walk of a stack: frames are adjacent, and so are functions and instructions of one
 * file. System calls for each of them would be most of the cost of a profile. A walk never uses pages of an earlier
 * one. */
#define PAGE 4096
#define PAGES 16

typedef struct {
    int memory;
    struct {
        uintptr_t start; /* 0: none */
        size_t got;
    } held[PAGES];
    char bytes[PAGES][PAGE];
} memory_reader;

static void reader_begin(memory_reader *l, int memory) {
    l->memory = memory;
    memset(l->held, 0, sizeof l->held);
}

/* Reads, through the cache, as many bytes as are mapped. */
static size_t read_mapped(memory_reader *l, const void *from, void *to, size_t size) {
    uintptr_t at = (uintptr_t)from, start = at & ~(uintptr_t)(PAGE - 1);
    size_t skipped = at - start, slot = start / PAGE % PAGES;
    if (start == 0 || size > PAGE - skipped) {
        return get_some(l->memory, from, to, size);
    }
    if (l->held[slot].start != start) {
        l->held[slot].got = get_some(l->memory, (const char *)start, l->bytes[slot], PAGE);
        l->held[slot].start = start;
    }
    size_t got = l->held[slot].got > skipped ? MIN(size, l->held[slot].got - skipped) : 0;
    memcpy(to, l->bytes[slot] + skipped, got);
    return got;
}

static bool read_exactly(memory_reader *l, const void *from, void *to, size_t size) {
    return from != NULL && read_mapped(l, from, to, size) == size;
}

/* --- coroutines --- */

static size_t read_coroutines(int memory, const coroutine *at, howdah_line *lines, size_t most, size_t *all) {
    const coroutine *running = NULL;
    const zend_execute_data *current = NULL;
    get(memory, &coroutine_current, &running, sizeof running);
    get(memory, &EG(current_execute_data), &current, sizeof current);
    size_t n = 0;
    coroutine self;
    *all = 0;
    for (size_t links = 0; at != NULL && links < MAX_COROUTINES && get(memory, at, &self, sizeof self); links++) {
        const zend_execute_data *frame = at == running ? current : self.frame;
        async_request request = {0};
        if (self.request != NULL) {
            get(memory, self.request, &request, sizeof request);
        }
        /* A coroutine that has not begun has no frame. */
        if (frame != NULL && self.state != COROUTINE_ENDED) {
            if (n < most) {
                lines[n++] = (howdah_line){
                    .coroutine = self.id,
                    .request = request.number,
                    .frame = (uint64_t)(uintptr_t)frame,
                    .waits_for = at == running || self.state != COROUTINE_WAITING ? 0 : (uintptr_t)self.waits_for,
                };
            }
            (*all)++;
        }
        at = self.older;
    }
    return n;
}

SHIM_EXPORT size_t howdah_c_read_lines(int memory, bool idle, howdah_line *lines, size_t most, size_t *all) {
    const coroutine *youngest = NULL;
    const void *request = NULL;
    const zend_execute_data *frame = NULL;
    *all = 0;
    if (!get(memory, coroutine_youngest_place(), &youngest, sizeof youngest)) {
        return 0;
    }
    if (youngest != NULL) {
        return read_coroutines(memory, youngest, lines, most, all);
    }
    get(memory, &shim.request, &request, sizeof request);
    get(memory, &EG(current_execute_data), &frame, sizeof frame);
    if ((request == NULL && !idle) || frame == NULL || most == 0) {
        return 0;
    }
    *all = 1;
    lines[0] = (howdah_line){.frame = (uint64_t)(uintptr_t)frame};
    return 1;
}

/* --- frames --- */

/* Returns the line of a frame. PHP stores it only where it may be needed, so within a function it may be an earlier
 * one. */
static uint32_t line_of(memory_reader *l, const zend_op_array *code, const zend_op *at) {
    zend_op instruction;
    if (at < code->opcodes || at >= code->opcodes + code->last ||
        !read_exactly(l, at, &instruction, sizeof instruction)) {
        return code->line_start;
    }
    return instruction.lineno;
}

/* Differs for two functions that have had the same address, one after the other. */
static uint64_t mark_of(const zend_function *function) {
    const uint64_t parts[] = {
        function->type,
        (uintptr_t)function->common.function_name,
        (uintptr_t)function->common.scope,
        ZEND_USER_CODE(function->type) ? (uintptr_t)function->op_array.filename : 0,
        ZEND_USER_CODE(function->type) ? (uintptr_t)function->op_array.opcodes : 0,
        ZEND_USER_CODE(function->type) ? function->op_array.line_start : 0,
    };
    uint64_t mark = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        mark = (mark ^ parts[i]) * UINT64_C(0x100000001b3);
    }
    return mark;
}

static bool get_function(memory_reader *l, const zend_function *from, zend_function *function) {
    memset(function, 0, sizeof *function);
    size_t got = read_mapped(l, from, function, sizeof *function);
    if (got < sizeof(zend_internal_function)) {
        return false;
    }
    return function->type == ZEND_INTERNAL_FUNCTION || (ZEND_USER_CODE(function->type) && got >= sizeof(zend_op_array));
}

SHIM_EXPORT size_t howdah_c_read_stack(int memory, uint64_t innermost, howdah_frame *frames, size_t most) {
    const zend_execute_data *at = (const zend_execute_data *)(uintptr_t)innermost;
    zend_execute_data frame;
    zend_function function;
    memory_reader l;
    reader_begin(&l, memory);
    size_t n = 0;
    for (size_t links = 0; n < most && links < MAX_LINKS && read_exactly(&l, at, &frame, sizeof frame); links++) {
        /* Frames without a function belong to generators and calls that PHP makes itself. */
        if (frame.func != NULL && get_function(&l, frame.func, &function)) {
            bool user = ZEND_USER_CODE(function.type);
            if (user || function.common.function_name != NULL) {
                frames[n++] = (howdah_frame){
                    .frame = (uint64_t)(uintptr_t)at,
                    .function = (uint64_t)(uintptr_t)frame.func,
                    .mark = mark_of(&function),
                    .line = user ? line_of(&l, &function.op_array, frame.opline) : 0,
                };
            }
        }
        at = frame.prev_execute_data;
    }
    return n;
}

/* --- names --- */

/* Reads the text of a string, or its end if it is longer. */
static size_t get_text(int memory, const zend_string *from, char *to, size_t size, bool end) {
    struct {
        zend_refcounted_h gc;
        zend_ulong h;
        size_t len;
    } head;
    if (!get(memory, from, &head, offsetof(zend_string, val)) || head.len > UINT32_MAX) {
        return 0;
    }
    size_t skipped = end && head.len > size ? head.len - size : 0;
    return get_some(memory, ZSTR_VAL(from) + skipped, to, MIN(size, head.len));
}

SHIM_EXPORT bool howdah_c_read_function(int memory, uint64_t address, howdah_function_name *name) {
    zend_function function;
    memory_reader l;
    reader_begin(&l, memory);
    name->length = 0;
    name->file_length = 0;
    if (!get_function(&l, (const zend_function *)(uintptr_t)address, &function)) {
        return false;
    }
    bool user = ZEND_USER_CODE(function.type);
    if (user) {
        name->file_length = (uint32_t)get_text(memory, function.op_array.filename, name->file, sizeof name->file, true);
    }
    if (function.common.function_name == NULL) {
        return user;
    }
    size_t at = 0;
    if (function.common.scope != NULL) {
        zend_string *class_name = NULL;
        get(memory, &function.common.scope->name, &class_name, sizeof class_name);
        at = get_text(memory, class_name, name->text, sizeof name->text / 2, false);
        memcpy(name->text + at, (function.common.fn_flags & ZEND_ACC_STATIC) != 0 ? "::" : "->", 2);
        at += 2;
    }
    at += get_text(memory, function.common.function_name, name->text + at, sizeof name->text - at, false);
    name->length = (uint32_t)at;
    return true;
}

SHIM_EXPORT size_t howdah_c_read_text(int memory, uint64_t address, char *text, size_t size) {
    size_t got = get_some(memory, (const char *)(uintptr_t)address, text, size);
    return strnlen(text, got);
}

/* --- queries --- */

#if SHIM_WITH_PDO
static size_t statement_query(int memory, const zend_object *object, char *text, size_t size) {
    const pdo_stmt_t *statement = (const pdo_stmt_t *)((const char *)object - XtOffsetOf(pdo_stmt_t, std));
    zend_string *query = NULL;
    get(memory, &statement->query_string, &query, sizeof query);
    return get_text(memory, query, text, size, false);
}
#else
static size_t statement_query(int memory, const zend_object *object, char *text, size_t size) {
    return 0;
}
#endif

SHIM_EXPORT size_t howdah_c_read_query(int memory, uint64_t address, bool of_statement, char *text, size_t size) {
    const zend_execute_data *at = (const zend_execute_data *)(uintptr_t)address;
    zend_execute_data frame;
    if (!get(memory, at, &frame, sizeof frame)) {
        return 0;
    }
    if (of_statement) {
        return Z_TYPE(frame.This) == IS_OBJECT ? statement_query(memory, Z_OBJ(frame.This), text, size) : 0;
    }
    /* The first string among the arguments: a connection may precede it. */
    for (uint32_t i = 1; i <= MIN(ZEND_CALL_NUM_ARGS(&frame), 3); i++) {
        zval argument;
        if (!get(memory, ZEND_CALL_ARG(at, i), &argument, sizeof argument)) {
            return 0;
        }
        if (Z_TYPE(argument) == IS_STRING) {
            return get_text(memory, Z_STR(argument), text, size, false);
        }
    }
    return 0;
}
