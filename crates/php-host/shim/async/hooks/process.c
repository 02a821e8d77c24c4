/* Waits for processes that scripts start: proc_close(), exec(), shell_exec(), popen(), pcntl_waitpid(). A pidfd allows
 * waiting for a process as for a descriptor (pidfd_open(2), Linux 5.3). libc's popen() hides the process, so it is
 * implemented here, with the same shell. */
#include "async/hooks/process.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/descriptors.h"
#include "async/hooks/waits.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* False: cancelled. True at once if the kernel has no pidfds: the caller then blocks. */
static bool wait_for_exit(pid_t pid) {
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process < 0) {
        return true;
    }
    int woken = async_wait_fd(process, POLLIN, COROUTINE_FOREVER, "waitpid");
    close(process);
    return woken != COROUTINE_CANCELLED;
}

pid_t async_wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    if (pid > 0 && (options & WNOHANG) == 0 && async_may_wait()) {
        pid_t ended = wait4(pid, status, options | WNOHANG, usage);
        if (ended != 0) {
            return ended;
        }
        if (!wait_for_exit(pid)) {
            errno = EINTR;
            return -1;
        }
    }
    return wait4(pid, status, options, usage);
}

pid_t async_waitpid(pid_t pid, int *status, int options) {
    return async_wait4(pid, status, options, NULL);
}

/* --- popen --- */

/* The processes of streams that async_popen() opened. */
typedef struct pipe_process {
    struct pipe_process *next;
    FILE *stream;
    pid_t pid;
} pipe_process;

static pipe_process *processes;

extern char **environ;

static int spawn_shell(pid_t *pid, const char *command, int child_end, int child_fd) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    /* dup2 onto itself keeps the descriptor open across exec, as POSIX requires of this function. */
    error = posix_spawn_file_actions_adddup2(&actions, child_end, child_fd);
    char *const arguments[] = {"sh", "-c", (char *)command, NULL};
    if (error == 0) {
        error = posix_spawn(pid, "/bin/sh", &actions, NULL, arguments, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

FILE *async_popen(const char *command, const char *type) {
    if (!async_may_wait()) {
        return popen(command, type);
    }
    bool reads = type[0] == 'r';
    int ends[2];
    pipe_process *process = malloc(sizeof *process);
    if (process == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        free(process);
        return NULL;
    }
    int ours = ends[reads ? 0 : 1], theirs = ends[reads ? 1 : 0];
    /* The stream first: without memory for it, a process without a reader would be left. */
    process->stream = fdopen(ours, reads ? "r" : "w");
    int error = process->stream == NULL
                    ? errno
                    : spawn_shell(&process->pid, command, theirs, reads ? STDOUT_FILENO : STDIN_FILENO);
    close(theirs);
    if (error != 0) {
        if (process->stream != NULL) {
            fclose(process->stream);
        } else {
            close(ours);
        }
        free(process);
        errno = error;
        return NULL;
    }
    process->next = processes;
    processes = process;
    return process->stream;
}

int async_pclose(FILE *stream) {
    pipe_process **at = &processes;
    while (*at != NULL && (*at)->stream != stream) {
        at = &(*at)->next;
    }
    pipe_process *process = *at;
    if (process == NULL) {
        return pclose(stream);
    }
    *at = process->next;
    pid_t pid = process->pid;
    free(process);
    fclose(stream);
    int status = -1;
    pid_t ended;
    do {
        ended = async_waitpid(pid, &status, 0);
    } while (ended < 0 && errno == EINTR && !(coroutine_current != NULL && coroutine_current->cancelled));
    return ended < 0 ? -1 : status;
}
