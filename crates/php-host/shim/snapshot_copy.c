/* Putting written pages back: most of what a restore takes, as what is read lies outside of the near caches. Three
 * ways, the best that the processor has: snapshot_lines.c; comparing and storing what differs; copying. */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Of a processor's cache. */
#define LINE 64

/* The processor fetches ahead within a page by itself, but not from one page to another. */
static void prefetch(const snapshot_run *run) {
    size_t length = run->length < SNAPSHOT_PAGE ? run->length : SNAPSHOT_PAGE;
    for (size_t at = 0; at < length; at += LINE) {
        __builtin_prefetch(run->from + at, 0, 3);
    }
}

#if defined(__x86_64__)
/* Stores only what differs, without a branch: a line that is as it was need not go back to memory. */
__attribute__((target("avx512f"))) static void copy_differences(char *to, const char *from, size_t length) {
    for (size_t at = 0; at < length; at += LINE) {
        __m512i wanted = _mm512_load_si512((const void *)(from + at));
        __mmask8 differs = _mm512_cmpneq_epi64_mask(wanted, _mm512_load_si512((const void *)(to + at)));
        _mm512_mask_store_epi64((void *)(to + at), differs, wanted);
    }
}

static bool can_copy_differences(void) {
    return __builtin_cpu_supports("avx512f");
}
#else
static void copy_differences(char *to, const char *from, size_t length) {
    memcpy(to, from, length);
}

static bool can_copy_differences(void) {
    return false;
}
#endif

void snapshot_copy_prepare(snapshot_state *s) {
    const char *forced = getenv("HOWDAH_SNAPSHOT_COPY");
    const bool lines = forced == NULL || strcmp(forced, "lines") == 0;
    const bool differences = lines || strcmp(forced, "differences") == 0;
    s->copies_differences = differences && can_copy_differences();
    if (lines) {
        snapshot_lines_prepare(s);
    }
}

void snapshot_copy_back(snapshot_state *s) {
    if (s->lines != NULL && snapshot_lines_put_back(s)) {
        return;
    }
    /* Nothing private may be used here: it changes under the hand. */
    bool differences = s->copies_differences;
    size_t bytes = 0;
    for (size_t i = 0; i < s->n_hot; i++) {
        const snapshot_run *run = &s->hot[i];
        if (i + 1 < s->n_hot) {
            prefetch(&run[1]);
        }
        if (differences) {
            copy_differences(run->to, run->from, run->length);
        } else {
            memcpy(run->to, run->from, run->length);
        }
        bytes += run->length;
    }
    s->numbers.written = bytes;
}
