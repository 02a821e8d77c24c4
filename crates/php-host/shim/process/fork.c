/* Forks of a process that runs PHP. A worker forked from the zygote renews what it must not share with its parent:
 * random state, and the signal handler that PHP installed while it preloaded scripts. A process that a script forks
 * (pcntl_fork) is not a worker: the lane belongs to its parent, and the process ends with its script, or with its
 * parent.
 *
 * Nothing else needs renewal: OPcache and APCu support forks; OpenSSL reseeds itself in a child; PHP reads random bytes
 * from the kernel; nothing in PHP caches the process id; interval timers are not inherited. */
#include "process/fork.h"

#include "shim.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Preloading ran a PHP request in the parent, and with it installed PHP's handler for the end of max_execution_time.
 * PHP takes over the other signals at a worker's first request, with the handlers they have then (modes/run.c). */
static void release_timeout_signal(void) {
    struct sigaction plain = {0};
    plain.sa_handler = SIG_DFL;
    sigemptyset(&plain.sa_mask);
    sigaction(SIGPROF, &plain, NULL);
}

/* Rust's runtime handles these two to report stack overflows, and its handler ignores the first one: it expects the
 * same instruction to fault again. A worker that gets one from another process must die of it. */
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

/* True while a fork is under way whose child continues as this worker. */
static bool with_lane;
static pid_t parent;

static void fork_begins(void) {
    parent = getpid();
    howdah_rs_fork_begins(with_lane);
}

static void fork_ends(void) {
    howdah_rs_fork_ends(with_lane);
}

/* Runs in every child of fork(), including one that calls exec() next, as proc_open() does: such a program keeps the
 * signal at its parent's end. Processes that the program starts do not get it. */
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

pid_t shim_fork_with_lane(void) {
    with_lane = true;
    pid_t child = fork();
    with_lane = false;
    return child;
}
