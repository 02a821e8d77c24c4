/* What a forked PHP must renew before it runs anything: random state that must not be the parent's, the signal handlers
 * that PHP took over while it preloaded scripts.
 *
 * What needs nothing here: OPcache and APCu are made for forks; OpenSSL reseeds itself in a child; PHP reads random
 * bytes from the kernel; nothing in PHP caches the process id; interval timers are not inherited. */
#include "shim.h"

#include <signal.h>

/* Preloading ran a PHP request in the parent, and with it PHP's handler for the end of max_execution_time. The other
 * signals that PHP handles are taken over at a worker's first request, with the handlers they have then (loop.c). */
static void release_timeout_signal(void) {
    struct sigaction plain = {0};
    plain.sa_handler = SIG_DFL;
    sigemptyset(&plain.sa_mask);
    sigaction(SIGPROF, &plain, NULL);
}

SHIM_EXPORT void howdah_c_after_fork(void) {
    shim_compat_forget_random_state();
    release_timeout_signal();
    signal(SIGPIPE, SIG_IGN);
}
