/* Restores one page by comparing: only differences are stored, so that unchanged lines need not be written back to
 * memory. */
#include "snapshot/engine/internal.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__x86_64__)
/* Without a branch: an unchanged line need not be written back to memory. */
__attribute__((target("avx512f"))) uint64_t snapshot_differences_copy(char *to, const char *from) {
    uint64_t lines = 0;
    for (size_t at = 0; at < SNAPSHOT_PAGE; at += SNAPSHOT_LINE) {
        __m512i wanted = _mm512_load_si512(from + at);
        __mmask8 differs = _mm512_cmpneq_epi64_mask(wanted, _mm512_load_si512(to + at));
        _mm512_mask_store_epi64(to + at, differs, wanted);
        lines |= (uint64_t)(differs != 0) << at / SNAPSHOT_LINE;
    }
    return lines;
}

bool snapshot_differences_are_seen(void) {
    return __builtin_cpu_supports("avx512f");
}
#else
uint64_t snapshot_differences_copy(char *to, const char *from) {
    memcpy(to, from, SNAPSHOT_PAGE);
    return UINT64_MAX;
}

bool snapshot_differences_are_seen(void) {
    return false;
}
#endif
