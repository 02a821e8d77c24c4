/* Drops pages that need no restoring. The set of written pages only grows: a page that one rare request has written
 * would be copied back after every later one. So from time to time the engine watches for some restores which of these
 * pages differ from the snapshot at all. Those that never did are dropped: the kernel then maps the snapshot's own page
 * again, and the next write to it is a fault, which puts it back into the set.
 *
 * A page that each request writes, but leaves with its original content, looks the same. It returns to the set at once;
 * after a few times it is no longer dropped. */
#include "snapshot/engine/internal.h"

#include <string.h>
#include <sys/mman.h>

/* The first watch begins at this restore, each later one at eight times the number, up to a limit. */
#define FIRST_WATCH 64
#define LONGEST_PAUSE 32768
/* Duration of a watch in restores. */
#define WATCH 64
/* Maximum number of times that a page is dropped. */
#define MAX_DROPS 3

/* Flag in a page's mark; the other bits count how often it was dropped. */
#define DIFFERED 0x80

bool snapshot_trim_prepare(snapshot_state *s) {
    s->marks = snapshot_engine_memory(s->copy_length / SNAPSHOT_PAGE + 1);
    s->watch_from = FIRST_WATCH;
    if (s->marks == NULL) {
        snapshot_set_reason("no memory for marks of written pages");
        return false;
    }
    return true;
}

static unsigned char *mark_of(const snapshot_state *s, const char *from) {
    return &s->marks[(size_t)(from - s->copy) / SNAPSHOT_PAGE];
}

void snapshot_trim_watch(snapshot_state *s) {
    if (s->numbers.restores < s->watch_from) {
        return;
    }
    for (size_t i = 0; i < s->n_hot; i++) {
        const snapshot_run *run = &s->hot[i];
        for (size_t at = 0; at < run->length; at += SNAPSHOT_PAGE) {
            unsigned char *mark = mark_of(s, run->from + at);
            if ((*mark & DIFFERED) == 0 && memcmp(run->to + at, run->from + at, SNAPSHOT_PAGE) != 0) {
                *mark |= DIFFERED;
            }
        }
    }
}

/* Drops the pages of a run that did not differ, and resets the flag of all of them. */
static size_t drop(const snapshot_state *s, const snapshot_run *run) {
    size_t dropped = 0;
    for (size_t at = 0; at < run->length; at += SNAPSHOT_PAGE) {
        unsigned char *mark = mark_of(s, run->from + at);
        bool differed = (*mark & DIFFERED) != 0;
        *mark &= (unsigned char)~DIFFERED;
        if (differed || *mark == MAX_DROPS || madvise(run->to + at, SNAPSHOT_PAGE, MADV_DONTNEED) != 0) {
            continue;
        }
        ++*mark;
        dropped++;
#ifdef MADV_POPULATE_READ
        /* Maps the page again, so that only writing to it will be a fault. */
        madvise(run->to + at, SNAPSHOT_PAGE, MADV_POPULATE_READ);
#endif
    }
    return dropped;
}

bool snapshot_trim_due(const snapshot_state *s) {
    return s->numbers.restores >= s->watch_from + WATCH;
}

size_t snapshot_trim_end(snapshot_state *s) {
    size_t dropped = 0;
    snapshot_lines_forget(s);
    for (size_t i = 0; i < s->n_hot; i++) {
        dropped += drop(s, &s->hot[i]);
    }
    uint64_t pause = s->watch_from * 7 < LONGEST_PAUSE ? s->watch_from * 7 : LONGEST_PAUSE;
    s->watch_from += pause;
    return dropped;
}

void snapshot_trim_never(snapshot_state *s, const char *from) {
    *mark_of(s, from) = MAX_DROPS;
}
