/* Messages that a pool logs once and not for each worker: advice about an application that causes extra work. */
#include "snapshot/php/pool_notes.h"

#include "shim.h"
#include "sapi/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <syslog.h>

/* Shared by the zygote and all its descendants. A worker that writes garbage here silences the pool's messages or
 * shortens its warm-up; nothing else depends on it, so the two need no memory ordering. */
typedef struct notes {
    atomic_uint logged; /* bits by tap_advice */
    atomic_bool warmup_refused;
    atomic_uint_least64_t outdated_boot; /* when it began; no worker is forked from it any more */
} notes;

static notes *shared;
/* Number of sessions that this request's end has reset. In memory of the snapshot, so each request begins with 0. */
static unsigned resets;

void shim_snapshot_notes_startup(void) {
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = memory == MAP_FAILED ? NULL : memory;
}

void shim_snapshot_advise(tap_advice advice, const char *what) {
    static const char *const texts[] = {
        [TAP_ADVICE_TRANSACTION] =
            "a request has left a transaction open on a connection opened at boot; it was rolled "
            "back. End transactions in the request that begins them",
        [TAP_ADVICE_SESSION] =
            "a request has left %s on a connection opened at boot; its session was reset, which takes "
            "extra round trips to its server. Undo it in the request, or open a connection there",
        [TAP_ADVICE_REPLACED] = "a request has left %s on a connection opened at boot, which cannot be undone: its "
                                "worker is replaced and boots again. Open such a connection in the request",
        [TAP_ADVICE_ANSWER] = "a request has ended before all answers were read on a connection opened at boot: its "
                              "worker is replaced. Read every answer, or open such a connection in the request",
        [TAP_ADVICE_FILES] = "a request lost the process's lock on a file opened at boot: its worker is "
                             "replaced. Close databases of SQLite before the snapshot, or open and close their file "
                             "in requests only through SQLite",
        [TAP_ADVICE_WARMUP] =
            "a warm-up request cannot be undone (%s): the pool runs no warm-up on the finished snapshot",
    };
    if (shared != NULL &&
        (atomic_fetch_or_explicit(&shared->logged, 1u << advice, memory_order_relaxed) & 1u << advice) != 0) {
        return;
    }
    char line[400];
    (snprintf)(line, sizeof line, texts[advice], what != NULL ? what : "");
    shim_log(LOG_WARNING, "snapshot: %s (logged once)", line);
}

void shim_snapshot_count_reset(void) {
    resets++;
}

unsigned shim_snapshot_resets(void) {
    return resets;
}

void shim_snapshot_refuse_warmup(const char *why) {
    shim_snapshot_advise(TAP_ADVICE_WARMUP, why);
    if (shared != NULL) {
        atomic_store_explicit(&shared->warmup_refused, true, memory_order_relaxed);
    }
}

bool shim_snapshot_warmup_refused(void) {
    return shared != NULL && atomic_load_explicit(&shared->warmup_refused, memory_order_relaxed);
}

void shim_snapshot_outdate_boot(uint64_t began_us) {
    if (shared != NULL) {
        atomic_store_explicit(&shared->outdated_boot, began_us, memory_order_relaxed);
    }
}

SHIM_EXPORT bool howdah_c_boot_is_outdated(uint64_t began_us) {
    return shared != NULL && atomic_load_explicit(&shared->outdated_boot, memory_order_relaxed) == began_us;
}
