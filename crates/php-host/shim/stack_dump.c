/* The PHP stack of this process as text, for a log line about a worker that is about to be killed. Runs in a signal
 * handler at any point of PHP's work, so it reads memory and does nothing else: no allocation, no PHP function, no
 * stdio. Frames, names and the whole text are bounded. */
#include "shim.h"

#include <string.h>

#define MAX_FRAMES 64
/* A chain longer than this is taken for a corrupt one. */
#define MAX_LINKS 4096
#define MAX_NAME 512

typedef struct text {
    char *at;
    size_t room;
} text;

static void put_bytes(text *out, const char *bytes, size_t length) {
    if (length > out->room) {
        length = out->room;
    }
    memcpy(out->at, bytes, length);
    out->at += length;
    out->room -= length;
}

static void put(text *out, const char *literal) {
    put_bytes(out, literal, strlen(literal));
}

static void put_string(text *out, const zend_string *string) {
    if (string == NULL) {
        put(out, "?");
        return;
    }
    size_t length = ZSTR_LEN(string);
    put_bytes(out, ZSTR_VAL(string), length < MAX_NAME ? length : MAX_NAME);
}

static void put_number(text *out, uint32_t number) {
    char digits[10];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    put_bytes(out, digits + first, sizeof digits - first);
}

static void put_frame(text *out, uint32_t number, const zend_execute_data *frame) {
    const zend_function *function = frame->func;
    put(out, "#");
    put_number(out, number);
    if (ZEND_USER_CODE(function->type)) {
        put(out, " ");
        put_string(out, function->op_array.filename);
        put(out, ":");
        /* Within one statement the line may be that of an earlier one: PHP stores it only where it may be asked for. */
        put_number(out, frame->opline != NULL ? frame->opline->lineno : function->op_array.line_start);
        put(out, " ");
    } else {
        put(out, " [internal] ");
    }
    if (function->common.function_name == NULL) {
        put(out, "{main}\n");
        return;
    }
    if (function->common.scope != NULL) {
        put_string(out, function->common.scope->name);
        put(out, (function->common.fn_flags & ZEND_ACC_STATIC) ? "::" : "->");
    }
    put_string(out, function->common.function_name);
    put(out, "()\n");
}

SHIM_EXPORT size_t howdah_c_dump_stack(char *buffer, size_t size) {
    text out = {buffer, size};
    const zend_execute_data *frame = EG(current_execute_data);
    uint32_t number = 0;
    for (uint32_t links = 0; frame != NULL && links < MAX_LINKS && number < MAX_FRAMES && out.room > 0; links++) {
        /* Frames without a function belong to generators and calls that PHP makes itself. */
        if (frame->func != NULL) {
            put_frame(&out, number++, frame);
        }
        frame = frame->prev_execute_data;
    }
    if (frame != NULL && number == MAX_FRAMES) {
        put(&out, "...\n");
    }
    return size - out.room;
}
