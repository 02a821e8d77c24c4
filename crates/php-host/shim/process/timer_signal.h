/* The signal of PHP's time limit; see timer_signal.c. */
#ifndef HOWDAH_TIMER_SIGNAL_H
#define HOWDAH_TIMER_SIGNAL_H

/* From now on, PHP's calls for the signal reach the kernel only if they change something. */
void shim_timer_signal_keep(void);

#endif
