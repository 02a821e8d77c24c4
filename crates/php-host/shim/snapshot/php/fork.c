/* Forks that snapshot mode makes: children that continue as this worker, and workers forked from one that has booted
 * the application. */
#include "shim.h"
#include "process/fork.h"
#include "process/timer_signal.h"
#include "snapshot/engine/snapshot.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t snapshot_fork(void) {
    return shim_fork_with_lane();
}

/* Returns the address of this thread's number in the C library, which compares it with the owner of a lock. NULL if the
 * library has not registered it with the kernel. */
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
 * no function for that, so this one does what its fork() does in a child with one thread. Handlers that libraries have
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
    shim_timer_signal_forked();
    if (robust_list != NULL) {
        syscall(SYS_set_robust_list, robust_list, length);
    }
    if (!snapshot_forked()) {
        fprintf(stderr, "howdah-php: snapshot: %s\n", snapshot_reason());
        _exit(EXIT_FAILURE);
    }
    return 0;
}
