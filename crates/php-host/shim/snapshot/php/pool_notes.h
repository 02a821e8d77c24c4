/* Messages that a pool logs once, and counters of its workers. */
#ifndef HOWDAH_SNAPSHOT_PHP_POOL_NOTES_H
#define HOWDAH_SNAPSHOT_PHP_POOL_NOTES_H

#include <stdbool.h>
#include <stdint.h>

/* Advice for the log: each line is logged once in a pool. */
typedef enum tap_advice {
    TAP_ADVICE_TRANSACTION,
    TAP_ADVICE_SESSION,
    TAP_ADVICE_REPLACED,
    TAP_ADVICE_ANSWER,
    TAP_ADVICE_FILES,
    TAP_ADVICE_WARMUP,
} tap_advice;

/* Logs the line unless a worker of the pool has done so; `what` describes the event. */
void shim_snapshot_advise(tap_advice advice, const char *what);
/* Counts a session that was reset to its state at boot. */
void shim_snapshot_count_reset(void);

/* Called before the zygote forks: allocates memory that all workers of the pool share. */
void shim_snapshot_notes_startup(void);
/* Returns the number of sessions that were reset after this request. */
unsigned shim_snapshot_resets(void);
/* Disables warm-up requests on the finished snapshot from now on, in this pool. */
void shim_snapshot_refuse_warmup(const char *why);
bool shim_snapshot_warmup_refused(void);
/* No more workers are forked from the boot that began at this time (Unix time in microseconds): the next one boots. */
void shim_snapshot_outdate_boot(uint64_t began_us);

#endif
