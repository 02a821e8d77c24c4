/* Putting written pages back: most of what a restore takes, as what is read lies outside of the near caches. Three
 * ways, the best that the processor has: lines.c; comparing and storing what differs; copying. */
#include "snapshot/engine/internal.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* The processor fetches ahead within a page by itself, but not from one page to another. */
static void prefetch(const snapshot_run *run) {
    size_t length = run->length < SNAPSHOT_PAGE ? run->length : SNAPSHOT_PAGE;
    for (size_t at = 0; at < length; at += SNAPSHOT_LINE) {
        __builtin_prefetch(run->from + at, 0, 3);
    }
}

#if defined(__x86_64__)
/* Without a branch: a line that is as it was need not go back to memory. */
__attribute__((target("avx512f"))) uint64_t snapshot_copy_differences(char *to, const char *from) {
    uint64_t lines = 0;
    for (size_t at = 0; at < SNAPSHOT_PAGE; at += SNAPSHOT_LINE) {
        __m512i wanted = _mm512_load_si512(from + at);
        __mmask8 differs = _mm512_cmpneq_epi64_mask(wanted, _mm512_load_si512(to + at));
        _mm512_mask_store_epi64(to + at, differs, wanted);
        lines |= (uint64_t)(differs != 0) << at / SNAPSHOT_LINE;
    }
    return lines;
}

static bool can_copy_differences(void) {
    return __builtin_cpu_supports("avx512f");
}
#else
uint64_t snapshot_copy_differences(char *to, const char *from) {
    memcpy(to, from, SNAPSHOT_PAGE);
    return UINT64_MAX;
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
            for (size_t at = 0; at < run->length; at += SNAPSHOT_PAGE) {
                snapshot_copy_differences(run->to + at, run->from + at);
            }
        } else {
            memcpy(run->to, run->from, run->length);
        }
        bytes += run->length;
    }
    s->numbers.written = bytes;
}
