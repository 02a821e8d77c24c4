/* Passes PHP's messages and the shim's own to the server's log. */
#ifndef HOWDAH_SAPI_LOG_H
#define HOWDAH_SAPI_LOG_H

#include "shim.h"

void shim_log_line(int level, const char *line, size_t length);
void shim_sapi_log(const char *message, int level);
/* A message of level LOG_ERR or worse has been logged since shim_log_forget_errors(). */
bool shim_log_has_error(void);
void shim_log_forget_errors(void);
void shim_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
