/* PHP installs the handler of its time limit at the start of each request and unblocks the signal: two system calls
 * that rarely change anything. Calls by which libraries of PHP code may change either are watched. Calls by FFI cannot
 * be watched, so where scripts may use FFI, both system calls are always made. */
#include "process/timer_signal.h"

#include "shim.h"
#include "process/changes.h"
#include "process/import_hooks.h"

#include <signal.h>
#include <string.h>

static struct sigaction installed;
static bool is_installed, is_unblocked;
static sigset_t timer_only;
/* Size of the part of a signal set that is filled in: the kernel reads only that (rt_sigprocmask(2)). */
#define SET_BYTES (64 / 8)

static int watched_sigaction(int number, const struct sigaction *new, struct sigaction *old) {
    if (number != SIGPROF || new == NULL) {
        return sigaction(number, new, old);
    }
    if (is_installed && old == NULL && memcmp(&installed, new, sizeof installed) == 0) {
        return 0;
    }
    int status = sigaction(number, new, old);
    /* A handler for a single signal may already be reset. */
    is_installed = status == 0 && (new->sa_flags &(int)SA_RESETHAND) == 0;
    installed = *new;
    return status;
}

static __sighandler_t watched_signal(int number, __sighandler_t handler) {
    is_installed = is_installed && number != SIGPROF;
    return signal(number, handler);
}

static int watched_sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    if (set != NULL && how == SIG_UNBLOCK && old == NULL && is_unblocked && memcmp(set, &timer_only, SET_BYTES) == 0) {
        return 0;
    }
    int status = sigprocmask(how, set, old);
    if (set != NULL && how != SIG_UNBLOCK) {
        is_unblocked = false;
    } else if (set != NULL && status == 0 && sigismember(set, SIGPROF) == 1) {
        is_unblocked = true;
    }
    return status;
}

static const import_hook hooks[] = {
    {"sigaction", watched_sigaction},
    {"signal", watched_signal},
    {"sigprocmask", watched_sigprocmask},
};

void shim_timer_signal_keep(void) {
    if (shim_calls_unseen()) {
        return;
    }
    sigemptyset(&timer_only);
    sigaddset(&timer_only, SIGPROF);
    import_hooks_install(hooks, sizeof hooks / sizeof *hooks);
}
