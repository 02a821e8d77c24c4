/* Restores written pages without reading the snapshot, on processors that multiply polynomials 64 bytes at a time.
 *
 * A request writes to many pages, but to few places in each: of 7500 cache lines in an application's written pages,
 * some 300 differ from the snapshot in the end, and nearly always the same ones. Comparing all of them with the
 * snapshot moves twice their size through the caches after each request, and evicts what the next one needs. So this is
 * kept for each written page:
 *
 *   lines      the lines that have differed since they were last forgotten (snapshot_lines_forget())
 *   content    the content of those lines in the snapshot; contiguous for all pages
 *   sum        a checksum of the page in the snapshot
 *
 * A restore stores the content without reading the page, then takes the page's checksum. If it equals the snapshot's,
 * so does the page. If not, a line differs that never did before: the page is compared after all, and that line is
 * added. A page with many such lines is always compared.
 *
 * The checksum: the page is added to a key of its size (in GF(2), which is XOR); then in every 16 bytes the two halves
 * are multiplied as polynomials, and the products in each quarter of the lines are added up: four sums of 128 bits.
 * Take two pages that differ in a word, and all of the key except the part that is added to that word's neighbour: at
 * most one value of this part makes the sums equal, since a product of polynomials is zero only if a factor is. So,
 * whatever the pages contain, they have the same sum for at most one in 2^64 keys. (It is the NH hash of UMAC, RFC 4418
 * section 5.2, in another ring.) The key is random, made for each snapshot, and nothing that a request sees depends on
 * it: no content is likelier than another to be missed, neither by accident nor by design. One in 2^64 changes that
 * touch a line for the first time would be missed; memory errors are far likelier. */
#include "snapshot/engine/internal.h"

#include <string.h>
#include <sys/random.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define LINE SNAPSHOT_LINE
/* A page with more differing lines is always compared. */
#define MAX_LINES 16
#define ALL_LINES UINT64_MAX

#define PROCESSOR __attribute__((target("avx512f,vpclmulqdq")))

typedef struct written_page {
    unsigned char sum[LINE];
    char *to;
    const char *from;
    uint64_t lines;
} __attribute__((aligned(LINE))) written_page;

struct snapshot_lines {
    unsigned char key[SNAPSHOT_PAGE] __attribute__((aligned(LINE)));
    uint64_t *known; /* `lines` of each page of the copy, including pages that are not written at the moment */
    size_t n_pages;
    written_page *pages; /* sorted by address */
    char *content;       /* MAX_LINES lines for each of `pages` */
    uint64_t seen;       /* the engine's search count at the last restore */
    uint64_t listed;     /* the search count that `pages` are from; 0: they must be listed again */
};

void snapshot_lines_prepare(snapshot_state *s) {
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("vpclmulqdq")) {
        return;
    }
    const size_t pages = s->copy_length / SNAPSHOT_PAGE;
    snapshot_lines *l = snapshot_engine_memory(sizeof *l);
    if (l == NULL || getrandom(l->key, sizeof l->key, 0) != sizeof l->key) {
        return;
    }
    l->known = snapshot_engine_memory(pages * sizeof *l->known);
    l->pages = snapshot_engine_memory(pages * sizeof *l->pages);
    l->content = snapshot_engine_memory(pages * MAX_LINES * LINE);
    if (l->known != NULL && l->pages != NULL && l->content != NULL) {
        s->lines = l;
    }
}

/* Uses four independent chains, as a product takes longer than the processor needs to start the next one. Meanwhile the
 * next page is prefetched: the processor's own prefetching ends with the page. */
PROCESSOR static __m512i checksum(const char *page, const unsigned char *key, const char *next) {
    __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    for (size_t at = 0; at < SNAPSHOT_PAGE;) {
        for (size_t i = 0; i < 4; i++, at += LINE) {
            __builtin_prefetch(next + at, 0, 3);
            __m512i line = _mm512_xor_si512(_mm512_load_si512(page + at), _mm512_load_si512(key + at));
            sums[i] = _mm512_xor_si512(sums[i], _mm512_clmulepi64_epi128(line, line, 0x01));
        }
    }
    return _mm512_xor_si512(_mm512_xor_si512(sums[0], sums[1]), _mm512_xor_si512(sums[2], sums[3]));
}

static char *content_of(const snapshot_lines *l, const written_page *page) {
    return l->content + (size_t)(page - l->pages) * MAX_LINES * LINE;
}

static void note_content(const snapshot_lines *l, const written_page *page) {
    if (page->lines == ALL_LINES) {
        return;
    }
    char *content = content_of(l, page);
    for (uint64_t left = page->lines; left != 0; left &= left - 1) {
        memcpy(content, page->from + LINE * (size_t)__builtin_ctzll(left), LINE);
        content += LINE;
    }
}

static uint64_t *changed_lines(const snapshot_state *s, const written_page *page) {
    return &s->lines->known[(size_t)(page->from - s->copy) / SNAPSHOT_PAGE];
}

PROCESSOR static void list_pages(snapshot_state *s) {
    snapshot_lines *l = s->lines;
    l->n_pages = 0;
    for (size_t i = 0; i < s->n_hot; i++) {
        const snapshot_run *run = &s->hot[i];
        for (size_t at = 0; at < run->length; at += SNAPSHOT_PAGE) {
            written_page *page = &l->pages[l->n_pages++];
            page->to = run->to + at;
            page->from = run->from + at;
            page->lines = *changed_lines(s, page);
            _mm512_store_si512(page->sum, checksum(page->from, l->key, page->from));
            note_content(l, page);
        }
    }
    l->listed = l->seen;
}

/* Copies the differences, and records their lines. */
static void compare(const snapshot_state *s, written_page *page) {
    uint64_t differed = snapshot_differences_copy(page->to, page->from);
    if ((differed & ~page->lines) != 0) {
        uint64_t lines = page->lines | differed;
        page->lines = *changed_lines(s, page) = __builtin_popcountll(lines) > MAX_LINES ? ALL_LINES : lines;
        note_content(s->lines, page);
    }
}

PROCESSOR static void put_back(const snapshot_state *s, written_page *page, const char *next) {
    if (page->lines == ALL_LINES) {
        compare(s, page);
        return;
    }
    const char *content = content_of(s->lines, page);
    for (uint64_t left = page->lines; left != 0; left &= left - 1) {
        _mm512_store_si512(page->to + LINE * (size_t)__builtin_ctzll(left), _mm512_load_si512(content));
        content += LINE;
    }
    __m512i sum = checksum(page->to, s->lines->key, next);
    if (_mm512_cmpneq_epi64_mask(sum, _mm512_load_si512(page->sum)) != 0) {
        compare(s, page);
    }
}

bool snapshot_lines_put_back(snapshot_state *s) {
    snapshot_lines *l = s->lines;
    if (l->seen != s->searches) {
        /* If each request makes the engine search, checksums gain nothing. */
        l->seen = s->searches;
        return false;
    }
    if (l->listed != l->seen) {
        list_pages(s);
    }
    for (size_t i = 0; i < l->n_pages; i++) {
        put_back(s, &l->pages[i], l->pages[i + 1 < l->n_pages ? i + 1 : i].to);
    }
    s->numbers.written = l->n_pages * SNAPSHOT_PAGE;
    return true;
}

void snapshot_lines_forget(snapshot_state *s) {
    if (s->lines != NULL) {
        for (size_t i = 0; i < s->lines->n_pages; i++) {
            *changed_lines(s, &s->lines->pages[i]) = 0;
        }
        s->lines->listed = 0;
    }
}
#else
void snapshot_lines_prepare(snapshot_state *s) {
    (void)s;
}

bool snapshot_lines_put_back(snapshot_state *s) {
    (void)s;
    return false;
}

void snapshot_lines_forget(snapshot_state *s) {
    (void)s;
}
#endif
