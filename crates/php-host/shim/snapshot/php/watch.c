/* Watches calls with which a script changes state of the kernel, in addition to process/changes.c. They are rare, so
 * they are intercepted and cost other requests nothing. The restore undoes some; others replace the worker. */
#include "snapshot/php/watch.h"

#include "shim.h"
#include "process/changes.h"
#include "process/import_hooks.h"
#include "process/timer_signal.h"
#include "sapi/watch_function.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/request_end.h"
#include "snapshot/sessions/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <unistd.h>

/* For semaphores that only the script releases: number of acquisitions minus number of releases. */
static int acquired;
/* True if the script has requested that its semaphores stay acquired. */
static bool stays_acquired;

/* True if the request's response is complete and its script continues. The restore makes it false. */
static bool responded;

/* --- libc's functions --- */

/* Files below /proc control processes: their names, their limits, their priority for the out-of-memory killer. */
static int check_opened_file(int fd, int flags) {
    struct statfs about;
    int error = errno;
    if (fd >= 0 && (flags & O_ACCMODE) != O_RDONLY && snapshot_taken() && !shim.script_child &&
        fstatfs(fd, &about) == 0 && (unsigned long)about.f_type == PROC_SUPER_MAGIC) {
        snapshot_spoil("the script has opened a file below /proc for writing");
    }
    errno = error;
    return fd;
}

static mode_t mode_in(int flags, va_list arguments) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(arguments, unsigned) : 0;
}

static int watched_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_in(flags, arguments);
    va_end(arguments);
    return check_opened_file(open(path, flags, mode), flags);
}

static int watched_open_2(const char *path, int flags) {
    return check_opened_file(open(path, flags, 0), flags);
}

static int watched_openat(int directory, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_in(flags, arguments);
    va_end(arguments);
    return check_opened_file(openat(directory, path, flags, mode), flags);
}

static void note_lock(int fd) {
    if (snapshot_taken() && snapshot_is_boot_descriptor(fd)) {
        snapshot_locks_touched();
    }
}

static int watched_flock(int fd, int operation) {
    note_lock(fd);
    return flock(fd, operation);
}

/* The third argument is a number or a pointer; either can be passed as a pointer. */
static int watched_fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW) {
        note_lock(fd);
    }
    return fcntl(fd, command, argument);
}

static unsigned watched_alarm(unsigned seconds) {
    snapshot_touched(SNAPSHOT_ALARM);
    return alarm(seconds);
}

/* PHP stops its own timer, of processor time. */
static int watched_setitimer(__itimer_which_t which, const struct itimerval *new, struct itimerval *old) {
    if (which == ITIMER_PROF) {
        return shim_timer_set(new, old);
    }
    if (which == ITIMER_REAL) {
        snapshot_touched(SNAPSHOT_ALARM);
    }
    return setitimer(which, new, old);
}

static int watched_chdir(const char *path) {
    snapshot_touched(SNAPSHOT_DIRECTORY);
    return chdir(path);
}

static int watched_fchdir(int fd) {
    snapshot_touched(SNAPSHOT_DIRECTORY);
    return fchdir(fd);
}

static mode_t watched_umask(mode_t mask) {
    snapshot_touched(SNAPSHOT_UMASK);
    return umask(mask);
}

static pid_t watched_fork(void) {
    snapshot_touched(SNAPSHOT_CHILDREN);
    return fork();
}

static FILE *watched_popen(const char *command, const char *type) {
    snapshot_touched(SNAPSHOT_CHILDREN);
    return popen(command, type);
}

static int watched_system(const char *command) {
    snapshot_touched(SNAPSHOT_CHILDREN);
    return system(command);
}

static int watched_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    snapshot_touched(SNAPSHOT_CHILDREN);
    return posix_spawn(pid, path, actions, attributes, arguments, environment);
}

static int watched_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    snapshot_touched(SNAPSHOT_CHILDREN);
    return posix_spawnp(pid, file, actions, attributes, arguments, environment);
}

static const import_hook hooks[] = {
    {"open", watched_open},           {"open64", watched_open},         {"__open_2", watched_open_2},
    {"__open64_2", watched_open_2},   {"openat", watched_openat},       {"openat64", watched_openat},
    {"flock", watched_flock},         {"fcntl", watched_fcntl},         {"fcntl64", watched_fcntl},
    {"alarm", watched_alarm},         {"setitimer", watched_setitimer}, {"chdir", watched_chdir},
    {"fchdir", watched_fchdir},       {"umask", watched_umask},         {"fork", watched_fork},
    {"popen", watched_popen},         {"system", watched_system},       {"posix_spawn", watched_spawn},
    {"posix_spawnp", watched_spawnp},
};

/* --- PHP's functions --- */

typedef struct watched {
    const char *name;
    zif_handler handler;
    zif_handler original;
} watched;

static watched functions[];

static zif_handler original_of(const zend_execute_data *execute_data);

/* The child inherits the connections, and may use or close them at any time. */
static ZEND_NAMED_FUNCTION(forks) {
    original_of(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    if (snapshot_taken() && Z_TYPE_P(return_value) == IS_LONG && Z_LVAL_P(return_value) > 0 &&
        shim_snapshot_has_connections()) {
        snapshot_spoil("the script has forked a process, which shares the connections opened at boot");
    }
}

static ZEND_NAMED_FUNCTION(gets_semaphore) {
    if (snapshot_taken() && ZEND_NUM_ARGS() >= 4 && !zend_is_true(ZEND_CALL_ARG(execute_data, 4))) {
        stays_acquired = true;
    }
    original_of(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* PHP releases a request's own semaphores with their objects, but those of the boot only with the process. */
static bool is_kept_semaphore(const zend_execute_data *execute_data) {
    const zval *argument = ZEND_NUM_ARGS() >= 1 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
    return snapshot_taken() && argument != NULL && Z_TYPE_P(argument) == IS_OBJECT &&
           (stays_acquired || shim_snapshot_is_boot_object(Z_OBJ_P(argument)));
}

static ZEND_NAMED_FUNCTION(acquires_semaphore) {
    bool kept = is_kept_semaphore(execute_data);
    original_of(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    acquired += kept && Z_TYPE_P(return_value) == IS_TRUE;
}

static ZEND_NAMED_FUNCTION(releases_semaphore) {
    bool kept = is_kept_semaphore(execute_data);
    original_of(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    acquired -= kept && Z_TYPE_P(return_value) == IS_TRUE;
}

/* Restoring signals takes many system calls, so the engine does so only if a call has changed one. */
static ZEND_NAMED_FUNCTION(touches_signals) {
    snapshot_touched(SNAPSHOT_SIGNALS | SNAPSHOT_ALARM);
    original_of(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* Worker scripts call it between two requests. Here the restore discards everything that a request has allocated;
 * destructors of garbage run at the request's end, as all others. */
static ZEND_NAMED_FUNCTION(collects) {
    if (!responded) {
        original_of(execute_data)(INTERNAL_FUNCTION_PARAM_PASSTHRU);
        return;
    }
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(0);
}

static watched functions[] = {
    {"gc_collect_cycles", collects, NULL},
    {"pcntl_fork", forks, NULL},
    {"pcntl_rfork", forks, NULL},
    {"pcntl_forkx", forks, NULL},
    {"sem_get", gets_semaphore, NULL},
    {"sem_acquire", acquires_semaphore, NULL},
    {"sem_release", releases_semaphore, NULL},
    {"pcntl_signal", touches_signals, NULL},
    {"pcntl_sigprocmask", touches_signals, NULL},
    {"pcntl_alarm", touches_signals, NULL},
    {"pcntl_sigwaitinfo", touches_signals, NULL},
    {"pcntl_async_signals", touches_signals, NULL},
};

static zif_handler original_of(const zend_execute_data *execute_data) {
    const char *name = ZSTR_VAL(execute_data->func->common.function_name);
    size_t i = 0;
    while (strcmp(functions[i].name, name) != 0) {
        i++;
    }
    return functions[i].original;
}

void shim_snapshot_watch(void) {
    import_hooks_install(hooks, sizeof hooks / sizeof *hooks);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        watched *function = &functions[i];
        function->original = shim_watch_function(function->name, strlen(function->name), function->handler);
    }
}

/* --- at the snapshot and after each request --- */

void shim_snapshot_watch_boot(void) {
    if (shim_calls_unseen()) {
        snapshot_unseen(SNAPSHOT_ALARM | SNAPSHOT_DIRECTORY | SNAPSHOT_UMASK | SNAPSHOT_CHILDREN | SNAPSHOT_NAME);
    }
}

void shim_snapshot_watch_responded(void) {
    responded = true;
}

const char *shim_snapshot_watch_settle(void) {
    return acquired != 0 ? "a semaphore was acquired and not released, or released without being acquired" : NULL;
}
