/* Replaces libc's calls that wait for processes. See hooks.h. */
#ifndef HOWDAH_ASYNC_HOOKS_PROCESS_H
#define HOWDAH_ASYNC_HOOKS_PROCESS_H

#include "shim.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

pid_t async_waitpid(pid_t pid, int *status, int options);
pid_t async_wait4(pid_t pid, int *status, int options, struct rusage *usage);
FILE *async_popen(const char *command, const char *type);
int async_pclose(FILE *stream);

#endif
