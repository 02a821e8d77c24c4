/* Messages that a pool logs once, and counters of its workers. */
#ifndef HOWDAH_SNAPSHOT_PHP_POOL_NOTES_H
#define HOWDAH_SNAPSHOT_PHP_POOL_NOTES_H

#include <stdbool.h>

/* Remedies for the log: each is logged once in a pool. */
typedef enum tap_advice {
    TAP_ADVICE_TRANSACTION,
    TAP_ADVICE_SESSION,
    TAP_ADVICE_REPLACED,
    TAP_ADVICE_ANSWER,
    TAP_ADVICE_FILES,
    TAP_ADVICE_WARMUP,
} tap_advice;

/* Writes the line into the log unless a worker of the pool has; `what` says what has happened. */
void shim_snapshot_advise(tap_advice advice, const char *what);
/* A session was made what it was at boot. */
void shim_snapshot_count_reset(void);

/* Before the zygote forks: memory that all workers of the pool share. */
void shim_snapshot_notes_startup(void);
/* Sessions that were reset after this request. */
unsigned shim_snapshot_resets(void);
/* Warm-up requests on the finished snapshot are left out from now on, in this pool. */
void shim_snapshot_refuse_warmup(const char *why);
bool shim_snapshot_warmup_refused(void);

#endif
