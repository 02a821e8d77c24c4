/* Passes PHP's messages to the server's log: errors with log_errors, error_log() without a target, startup problems,
 * and the shim's own messages. */
#include "sapi/log.h"

#include "shim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

static bool has_error;

bool shim_log_has_error(void) {
    return has_error;
}

void shim_log_forget_errors(void) {
    has_error = false;
}

void shim_log_line(int level, const char *line, size_t length) {
    has_error |= level <= LOG_ERR;
    if (shim.script_child) {
        dprintf(STDERR_FILENO, "%.*s\n", (int)length, line);
    } else {
        howdah_rs_log(level, line, length);
    }
}

void shim_sapi_log(const char *message, int level) {
    size_t length = strlen(message);
    while (length > 0 && (message[length - 1] == '\n' || message[length - 1] == '\r')) {
        length--;
    }
    if (level < LOG_EMERG || level > LOG_DEBUG) {
        level = LOG_NOTICE;
    }
    shim_log_line(level, message, length);
}

void shim_log(int level, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    /* The C library's, not the snprintf that PHP's headers replace it with: PHP-specific formats are not wanted
     * here. */
    int length = (vsnprintf)(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0) {
        shim_log_line(level, line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
    }
}
