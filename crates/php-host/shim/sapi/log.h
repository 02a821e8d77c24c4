/* Passes PHP's messages and the shim's own to the server's log. */
#ifndef HOWDAH_SAPI_LOG_H
#define HOWDAH_SAPI_LOG_H

#include "shim.h"

void shim_log_line(int level, const char *line, size_t length);
void shim_sapi_log(const char *message, int level);
/* An error or worse has been logged in this process. */
bool shim_log_has_error(void);
void shim_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
