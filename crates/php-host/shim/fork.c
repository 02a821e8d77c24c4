/* Forks of a process with PHP in it. A worker forked from the zygote renews what must not be the parent's: random
 * state, and the signal handler that PHP installed while it preloaded scripts. A process that a script forks
 * (pcntl_fork) is no worker: it has no lane, which belongs to its parent, and ends with its script, or with its parent.
 * In snapshot mode workers are also forked from one that has booted the application.
 *
 * What needs nothing here: OPcache and APCu are made for forks; OpenSSL reseeds itself in a child; PHP reads random
 * bytes from the kernel; nothing in PHP caches the process id; interval timers are not inherited. */
#include "shim.h"
#include "snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Preloading ran a PHP request in the parent, and with it PHP's handler for the end of max_execution_time. The other
 * signals that PHP handles are taken over at a worker's first request, with the handlers they have then (loop.c). */
static void release_timeout_signal(void) {
    struct sigaction plain = {0};
    plain.sa_handler = SIG_DFL;
    sigemptyset(&plain.sa_mask);
    sigaction(SIGPROF, &plain, NULL);
}

/* Rust's runtime handles these two to report stack overflows, and its handler lets the first one pass without effect:
 * it expects the same instruction to fault again. A worker that gets one from another process must die of it. */
static void release_fault_signals(void) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
}

SHIM_EXPORT void howdah_c_after_fork(void) {
    shim_compat_forget_random_state();
    release_timeout_signal();
    release_fault_signals();
    signal(SIGPIPE, SIG_IGN);
}

/* The fork under way goes on as this worker. */
static bool with_lane;
static pid_t parent;

static void fork_begins(void) {
    parent = getpid();
    howdah_rs_fork_begins(with_lane);
}

static void fork_ends(void) {
    howdah_rs_fork_ends(with_lane);
}

/* Runs in every child, also in one that calls exec() next, as proc_open() does: the signal at the parent's end stays
 * with the program then. What such a program starts on its own is not meant by that. */
static void become_child(void) {
    if (with_lane) {
        fork_ends();
        return;
    }
    shim.script_child = true;
    shim.response_ended = true;
    howdah_rs_became_script_child();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(EXIT_FAILURE);
    }
}

void shim_fork_watch(void) {
    static bool watching;
    if (!watching) {
        watching = pthread_atfork(fork_begins, fork_ends, become_child) == 0;
    }
}

pid_t snapshot_fork(void) {
    with_lane = true;
    pid_t child = fork();
    with_lane = false;
    return child;
}

/* Where the C library keeps this thread's number, which it compares with the owner of a lock. NULL where it does not
 * say so to the kernel. */
static pid_t *thread_number(void) {
    pid_t *number = NULL;
    if (prctl(PR_GET_TID_ADDRESS, &number) != 0 || number == NULL || *number != gettid()) {
        return NULL;
    }
    return number;
}

static pid_t clone_sibling(pid_t *number) {
    const unsigned long flags = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
#if defined(__aarch64__)
    return (pid_t)syscall(SYS_clone, flags, 0, NULL, 0, number);
#else
    return (pid_t)syscall(SYS_clone, flags, 0, NULL, number, 0);
#endif
}

/* fork(), but the new process is a child of this one's parent: the zygote, which reaps all workers. The C library has
 * no function for that, so what its fork() does in a child with one thread is done here. Handlers that libraries have
 * registered with pthread_atfork() do not run. */
SHIM_EXPORT int howdah_c_fork_sibling(void) {
    pid_t *number = thread_number();
    void *robust_list = NULL;
    size_t length = 0;
    if (number == NULL) {
        errno = ENOTSUP;
        return -1;
    }
    syscall(SYS_get_robust_list, 0, &robust_list, &length);
    pid_t child = clone_sibling(number);
    if (child != 0) {
        return child;
    }
    if (robust_list != NULL) {
        syscall(SYS_set_robust_list, robust_list, length);
    }
    if (!snapshot_forked()) {
        fprintf(stderr, "howdah-php: snapshot: %s\n", snapshot_reason());
        _exit(EXIT_FAILURE);
    }
    return 0;
}
