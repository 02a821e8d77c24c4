/* Text about frames of a PHP stack, written into a buffer of fixed size: whatever does not fit is omitted. Also used in
 * a signal handler (stack_dump.c), at any point of PHP's work, so all of it only reads memory: no allocation, no PHP
 * function, no stdio. */
#ifndef HOWDAH_STACK_TEXT_H
#define HOWDAH_STACK_TEXT_H

#include "shim.h"

#include <string.h>

typedef struct stack_text {
    char *at;
    size_t room;
    /* Maximum length in bytes; longer names, including file names, are cut off. */
    size_t longest_name;
} stack_text;

static inline void put_bytes(stack_text *out, const char *bytes, size_t length) {
    length = MIN(length, out->room);
    memcpy(out->at, bytes, length);
    out->at += length;
    out->room -= length;
}

static inline void put(stack_text *out, const char *literal) {
    put_bytes(out, literal, strlen(literal));
}

static inline void put_name(stack_text *out, const zend_string *name) {
    if (name == NULL) {
        put(out, "?");
        return;
    }
    put_bytes(out, ZSTR_VAL(name), MIN(ZSTR_LEN(name), out->longest_name));
}

static inline void put_number(stack_text *out, uint32_t number) {
    char digits[10];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    put_bytes(out, digits + first, sizeof digits - first);
}

/* For a frame of PHP code. Within one statement, the line may be that of an earlier one: PHP stores it only where it
 * may be needed. */
static inline void put_line_number(stack_text *out, const zend_execute_data *frame) {
    put_number(out, frame->opline != NULL ? frame->opline->lineno : frame->func->op_array.line_start);
}

/* Writes a function's name as PHP's own traces do; `code_of_file` stands for the code of a file, which has no name. */
static inline void put_function(stack_text *out, const zend_function *function, const char *code_of_file) {
    if (function->common.function_name == NULL) {
        put(out, code_of_file);
        return;
    }
    if (function->common.scope != NULL) {
        put_name(out, function->common.scope->name);
        put(out, (function->common.fn_flags & ZEND_ACC_STATIC) != 0 ? "::" : "->");
    }
    put_name(out, function->common.function_name);
    put(out, "()");
}

#endif
