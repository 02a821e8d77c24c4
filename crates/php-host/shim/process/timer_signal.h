/* The timer and the signal of PHP's time limit; see timer_signal.c. */
#ifndef HOWDAH_TIMER_SIGNAL_H
#define HOWDAH_TIMER_SIGNAL_H

#include <sys/time.h>

/* Size of the memory for shim_timer_signal_keep_in(). */
#define SHIM_TIMER_STATE_SIZE 64

/* From now on, PHP's calls for the timer and its signal reach the kernel only if they change something. */
void shim_timer_signal_keep(void);
/* The same in a process whose memory is restored: `memory`, of SHIM_TIMER_STATE_SIZE zeroed bytes, is left out of that,
 * as the kernel's timer is. NULL: PHP's calls stay as they are. */
void shim_timer_signal_keep_in(void *memory);
/* Called in a child for which no handlers of pthread_atfork() run: it has not inherited the timer. */
void shim_timer_signal_forked(void);
/* setitimer(ITIMER_PROF, …), for other hooks of that function. */
int shim_timer_set(const struct itimerval *new, struct itimerval *old);

#endif
