/* Copies written pages back: most of the cost of a restore, since the data it reads is not in the near caches. There
 * are three methods, of which the best that the processor supports is used: lines.c; comparing and storing the
 * differences; copying. */
#include "snapshot/engine/internal.h"

#include <stdlib.h>
#include <string.h>

/* The processor prefetches within a page, but not from one page to another. */
static void prefetch(const snapshot_run *run) {
    size_t length = run->length < SNAPSHOT_PAGE ? run->length : SNAPSHOT_PAGE;
    for (size_t at = 0; at < length; at += SNAPSHOT_LINE) {
        __builtin_prefetch(run->from + at, 0, 3);
    }
}

void snapshot_copy_prepare(snapshot_state *s) {
    const char *forced = getenv("HOWDAH_SNAPSHOT_COPY");
    const bool lines = forced == NULL || strcmp(forced, "lines") == 0;
    const bool differences = lines || strcmp(forced, "differences") == 0;
    s->copies_differences = differences && snapshot_differences_are_seen();
    if (lines) {
        snapshot_lines_prepare(s);
    }
}

void snapshot_copy_back(snapshot_state *s) {
    if (s->lines != NULL && snapshot_lines_put_back(s)) {
        return;
    }
    /* The loop uses no variable outside of the engine's memory: its page may be restored meanwhile. */
    bool differences = s->copies_differences;
    size_t bytes = 0;
    for (size_t i = 0; i < s->n_hot; i++) {
        const snapshot_run *run = &s->hot[i];
        if (i + 1 < s->n_hot) {
            prefetch(&run[1]);
        }
        if (differences) {
            for (size_t at = 0; at < run->length; at += SNAPSHOT_PAGE) {
                snapshot_differences_copy(run->to + at, run->from + at);
            }
        } else {
            memcpy(run->to, run->from, run->length);
        }
        bytes += run->length;
    }
    s->numbers.written = bytes;
}
