/* PHP's time limit counts the processor time of the process. PHP sets a timer of the kernel (ITIMER_PROF) and installs
 * the handler of its signal at the start of each request, and stops the timer at its end: four system calls, although
 * hardly any request comes near its limit. Here they reach the kernel only if they change something.
 *
 * The timer runs on over many requests, set to a fraction of the limit: a probe. It may expire in a request that began
 * a moment ago or a whole probe ago. Only then is the timer set to the limit, for that request alone. So a script is
 * ended after at least its limit, and at most a probe later.
 *
 * Calls by which libraries of PHP code may change timer and handler are watched. Calls by FFI cannot be watched, so
 * where scripts may use FFI, all system calls are made. */
#include "process/timer_signal.h"

#include "shim.h"
#include "process/changes.h"
#include "process/import_hooks.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Length of a probe as a fraction of the limit. */
#define PROBES_PER_LIMIT 8
/* Longest limit in seconds that is probed for. */
#define LONGEST_LIMIT 999999999

/* Purpose of the time that the kernel's timer is set to. */
typedef enum timer_kind {
    TIMER_OFF = 0,
    TIMER_PROBE, /* a fraction of the limit */
    TIMER_LIMIT, /* to the end of a script, or whatever else was asked for */
} timer_kind;

/* The signal may arrive between any two accesses, hence the atomics. */
typedef struct timer_state {
    _Atomic int kind;         /* timer_kind */
    _Atomic long limit;       /* of the running script in seconds; 0: none */
    _Atomic long probe_limit; /* the limit that the probe is a fraction of */
} timer_state;

_Static_assert(sizeof(timer_state) <= SHIM_TIMER_STATE_SIZE, "SHIM_TIMER_STATE_SIZE is too small");

static timer_state own_state;
static timer_state *timer = &own_state;
static bool watching;

/* The handler that PHP or the script has installed: the kernel's is expired(), which passes signals on. */
static struct sigaction installed;
static bool is_installed, is_unblocked;
static sigset_t timer_only;
/* Size of the part of a signal set that is filled in: the kernel reads only that (rt_sigprocmask(2)). */
#define SET_BYTES (64 / 8)

static void set_kernel_timer(timer_kind kind, long limit) {
    const long microseconds = kind == TIMER_PROBE ? limit * (1000000 / PROBES_PER_LIMIT) : limit * 1000000;
    const struct itimerval value = {.it_value = {microseconds / 1000000, microseconds % 1000000}};
    setitimer(ITIMER_PROF, &value, NULL);
    timer->kind = kind;
}

static void forward_signal(int number, siginfo_t *about, void *context) {
    struct sigaction to = installed;
    if ((to.sa_flags & SA_SIGINFO) == 0 && to.sa_handler == SIG_IGN) {
        return;
    }
    if ((to.sa_flags & SA_SIGINFO) == 0 && to.sa_handler == SIG_DFL) {
        signal(number, SIG_DFL);
        raise(number); /* takes effect when this handler returns */
        return;
    }
    if ((to.sa_flags & (int)SA_RESETHAND) != 0) {
        installed.sa_handler = SIG_DFL;
        installed.sa_flags = 0;
    }
    if ((to.sa_flags & SA_SIGINFO) != 0) {
        to.sa_sigaction(number, about, context);
    } else {
        to.sa_handler(number);
    }
}

/* The kernel's handler. */
static void expired(int number, siginfo_t *about, void *context) {
    const int error = errno;
    const bool by_timer = about->si_code == SI_KERNEL;
    const bool was_probe = by_timer && timer->kind == TIMER_PROBE;
    if (by_timer) {
        timer->kind = TIMER_OFF;
    }
    if (!was_probe) {
        forward_signal(number, about, context);
    } else if (timer->limit != 0) {
        set_kernel_timer(TIMER_LIMIT, timer->limit);
    }
    errno = error;
}

/* A limit as PHP sets it: whole seconds, once. */
static bool is_limit(const struct itimerval *value) {
    return value->it_value.tv_sec <= LONGEST_LIMIT && value->it_value.tv_usec == 0 && value->it_interval.tv_sec == 0 &&
           value->it_interval.tv_usec == 0;
}

int shim_timer_set(const struct itimerval *new, struct itimerval *old) {
    if (!watching || !is_installed || new == NULL || old != NULL || !is_limit(new)) {
        timer->limit = 0;
        timer->kind = TIMER_LIMIT;
        return setitimer(ITIMER_PROF, new, old);
    }
    /* The limit first: a probe that expires now finds it. */
    const long limit = timer->limit = new->it_value.tv_sec;
    const int kind = timer->kind;
    if (limit == 0 && kind == TIMER_LIMIT) {
        set_kernel_timer(TIMER_OFF, 0);
    } else if (limit != 0 && (kind != TIMER_PROBE || limit < timer->probe_limit)) {
        timer->probe_limit = limit;
        set_kernel_timer(TIMER_PROBE, limit);
    }
    return 0;
}

static int watched_setitimer(__itimer_which_t which, const struct itimerval *new, struct itimerval *old) {
    return which == ITIMER_PROF ? shim_timer_set(new, old) : setitimer(which, new, old);
}

static int watched_sigaction(int number, const struct sigaction *new, struct sigaction *old) {
    if (number != SIGPROF || (new == NULL && !is_installed)) {
        return sigaction(number, new, old);
    }
    const struct sigaction before = installed;
    const bool was_installed = is_installed;
    if (new != NULL && !(was_installed && memcmp(&before, new, sizeof before) == 0)) {
        struct sigaction kernels = *new, kernels_before;
        kernels.sa_sigaction = expired;
        kernels.sa_flags = (new->sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
        if (sigaction(number, &kernels, &kernels_before) != 0) {
            return -1;
        }
        installed = *new;
        is_installed = true;
        if (old != NULL && !was_installed) {
            *old = kernels_before;
        }
    }
    if (old != NULL && was_installed) {
        *old = before;
    }
    return 0;
}

static __sighandler_t watched_signal(int number, __sighandler_t handler) {
    if (number != SIGPROF) {
        return signal(number, handler);
    }
    struct sigaction new = {.sa_flags = SA_RESTART}, old;
    new.sa_handler = handler;
    sigemptyset(&new.sa_mask);
    return watched_sigaction(number, &new, &old) == 0 ? old.sa_handler : SIG_ERR;
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

/* Another program inherits the timer, but not the handler that knows of probes. */
static void leave_timer_to_program(void) {
    if (timer->kind == TIMER_PROBE) {
        set_kernel_timer(timer->limit != 0 ? TIMER_LIMIT : TIMER_OFF, timer->limit);
    }
}

static int watched_execve(const char *path, char *const arguments[], char *const environment[]) {
    leave_timer_to_program();
    return execve(path, arguments, environment);
}

static int watched_execv(const char *path, char *const arguments[]) {
    leave_timer_to_program();
    return execv(path, arguments);
}

static const import_hook hooks[] = {
    {"setitimer", watched_setitimer}, {"sigaction", watched_sigaction},     {"signal", watched_signal},
    {"execve", watched_execve},       {"sigprocmask", watched_sigprocmask}, {"execv", watched_execv},
};

void shim_timer_signal_forked(void) {
    timer->kind = TIMER_OFF;
    timer->limit = 0;
}

/* fork() may be the zygote's, which gives workers no handler of this signal (fork.c). */
static void forked(void) {
    shim_timer_signal_forked();
    is_installed = is_unblocked = false;
}

void shim_timer_signal_keep(void) {
    shim_timer_signal_keep_in(&own_state);
}

void shim_timer_signal_keep_in(void *memory) {
    if (memory == NULL || shim_calls_unseen() || pthread_atfork(NULL, NULL, forked) != 0) {
        return;
    }
    timer = memory;
    watching = true;
    sigemptyset(&timer_only);
    sigaddset(&timer_only, SIGPROF);
    import_hooks_install(hooks, sizeof hooks / sizeof *hooks);
}
