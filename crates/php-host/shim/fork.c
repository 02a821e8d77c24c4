/* What a forked PHP must renew before it runs anything: random state that must not be the parent's, the signal handlers
 * that PHP took over while it preloaded scripts, the timer and the table of handlers PHP falls back on.
 *
 * What needs nothing here: OPcache and APCu are made for forks; OpenSSL reseeds itself in a child; PHP reads random
 * bytes from the kernel; nothing in PHP caches the process id; interval timers are not inherited. */
#include "shim.h"

#include <signal.h>

/* PHP handles these itself once a request has run (see Zend/zend_signal.c). A worker starts with them at their default,
 * except those that the host installed or ignores. SIGPROF ends max_execution_time and is armed by preloading. */
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
