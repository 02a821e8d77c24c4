/* Copying written pages back: most of what a restore takes, as what is read lies outside of the near caches. */
#include "snapshot.h"

#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Of a processor's cache. */
#define LINE 64
/* So much is gathered, after so many restores without a search. */
#define GATHERED (2ul * 1024 * 1024)
#define QUIET 16

/* The processor fetches ahead within a page by itself, but not from one page to another. */
static void prefetch(const snapshot_run *run) {
    size_t length = run->length < SNAPSHOT_PAGE ? run->length : SNAPSHOT_PAGE;
    for (size_t at = 0; at < length; at += LINE) {
        __builtin_prefetch(run->near + at, 0, 3);
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

/* Private memory can have large pages where shared memory cannot. It is mapped after the snapshot's ranges are listed,
 * so it is none of them. */
static void map_gathered(snapshot_state *s) {
    char *memory = mmap(NULL, 2 * GATHERED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    char *start = (char *)(((uintptr_t)memory + GATHERED - 1) & ~(GATHERED - 1));
    munmap(start + GATHERED, (size_t)(memory + GATHERED - start));
    if (start > memory) {
        munmap(memory, (size_t)(start - memory));
    }
    madvise(start, GATHERED, MADV_HUGEPAGE);
    s->gathered = start;
}

void snapshot_copy_prepare(snapshot_state *s) {
    s->copies_differences = can_copy_differences();
    map_gathered(s);
}

/* Lays what is copied back side by side in a large page: the memfd's own pages lie anywhere in memory, and the
 * processor has to look each of them up. */
static void gather(snapshot_state *s) {
    size_t used = 0;
    for (size_t i = 0; i < s->n_hot && used + s->hot[i].length <= GATHERED; i++) {
        memcpy(s->gathered + used, s->hot[i].from, s->hot[i].length);
        s->hot[i].near = s->gathered + used;
        used += s->hot[i].length;
    }
}

void snapshot_copy_back(snapshot_state *s) {
    /* Nothing private may be used here: it changes under the hand. */
    bool differences = s->copies_differences;
    size_t bytes = 0;
    if (s->gathered != NULL && ++s->quiet_restores == QUIET) {
        gather(s);
    }
    for (size_t i = 0; i < s->n_hot; i++) {
        const snapshot_run *run = &s->hot[i];
        if (i + 1 < s->n_hot) {
            prefetch(&run[1]);
        }
        if (differences) {
            copy_differences(run->to, run->near, run->length);
        } else {
            memcpy(run->to, run->near, run->length);
        }
        bytes += run->length;
    }
    s->numbers.written = bytes;
}
