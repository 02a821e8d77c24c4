/* Handlers that compute for long delay the others. With the ini setting howdah.time_slice (milliseconds, 0: off), a
 * coroutine that has run for longer yields between two instructions of PHP and continues after the others had their
 * turn. C code (a large sort, an encryption) is not interrupted.
 *
 * A timer of the process sends a signal while coroutines run; its handler only requests PHP's interrupt. */
#include "async/tools/time_slice.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/timers.h"
#include "sapi/log.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <syslog.h>

/* Not used by PHP, which has SIGPROF for max_execution_time. */
#define SLICE_SIGNAL SIGVTALRM

static uint64_t slice;
static uint64_t entered_at;
/* True if a coroutine has used its time slice: requests and descriptors are checked before any coroutine continues. */
static bool turn_is_over;

static void on_signal(int signal) {
    (void)signal;
    SHIM_REQUEST_INTERRUPT();
}

void async_slice_startup(void) {
    zend_long milliseconds = zend_ini_long(ZEND_STRL("howdah.time_slice"), 0);
    if (milliseconds <= 0) {
        return;
    }
    slice = (uint64_t)milliseconds * UINT64_C(1000000);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    /* Processor time: an idle worker gets no signals. */
    struct itimerval every = {.it_interval = {milliseconds / 1000, milliseconds % 1000 * 1000}};
    every.it_value = every.it_interval;
    if (sigaction(SLICE_SIGNAL, &action, NULL) != 0 || setitimer(ITIMER_VIRTUAL, &every, NULL) != 0) {
        shim_log(LOG_WARNING, "cannot start the timer for howdah.time_slice, which has no effect");
        slice = 0;
    }
}

void async_slice_begin(void) {
    if (slice != 0) {
        entered_at = async_now();
    }
}

void async_slice_check(void) {
    if (slice == 0 || !coroutine_may_wait() || async_now() - entered_at < slice) {
        return;
    }
    turn_is_over = true;
    coroutine_yield();
}

void async_slice_begin_turn(void) {
    turn_is_over = false;
}

bool async_slice_ends_turn(void) {
    return turn_is_over;
}
