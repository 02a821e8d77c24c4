/* Writes the PHP stack of this process as text: for error pages, and for the log line about a worker that is about to
 * be killed. That one is written in a signal handler, at any point of PHP's work, so this only reads memory, as
 * stack_text.h does. Frames, names and the whole text are bounded. */
#include "shim.h"
#include "process/stack_text.h"

#define MAX_FRAMES 64
/* A longer chain is treated as corrupt. */
#define MAX_LINKS 4096
#define MAX_NAME 512

static void put_frame(stack_text *out, uint32_t number, const zend_execute_data *frame) {
    const zend_function *function = frame->func;
    put(out, "#");
    put_number(out, number);
    if (ZEND_USER_CODE(function->type)) {
        put(out, " ");
        put_name(out, function->op_array.filename);
        put(out, ":");
        put_line_number(out, frame);
        put(out, " ");
    } else {
        put(out, " [internal] ");
    }
    put_function(out, function, "{main}");
    put(out, "\n");
}

SHIM_EXPORT size_t howdah_c_dump_stack(char *buffer, size_t size) {
    stack_text out = {buffer, size, MAX_NAME};
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
