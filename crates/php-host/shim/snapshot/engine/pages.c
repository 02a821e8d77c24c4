/* Finds the pages that were written since the snapshot.
 *
 * A written page is an anonymous one: it no longer maps the memfd. It stays anonymous when its content is copied back,
 * so the set of such pages only grows, and only by page faults, until trim.c drops some. As long as the process's fault
 * counter is unchanged, the known set is complete. */
#include "snapshot/engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY_IS_NO_PROGRAM 8u /* MFD_NOEXEC_SEAL of linux/memfd.h (6.3) */

/* linux/fs.h of Linux 6.7; spelled out because building must not need such new headers. */
typedef struct scan_region {
    uint64_t start, end, categories;
} scan_region;

typedef struct scan_order {
    uint64_t size, flags, start, end, walk_end, regions, n_regions, max_pages;
    uint64_t inverted, all_of, any_of, returned;
} scan_order;

#define ORDER_SCAN _IOWR('f', 16, scan_order)
#define PAGE_FILE (1u << 2)
#define PAGE_PRESENT (1u << 3)
#define PAGE_SWAPPED (1u << 4)

/* An entry of /proc/self/pagemap. */
#define ENTRY_FILE (1ull << 61)
#define ENTRY_SWAPPED (1ull << 62)
#define ENTRY_PRESENT (1ull << 63)

/* Maximum gap in bytes between ranges that are searched together: walking a small gap costs less than another call. */
#define GAP (64 * 1024)
#define REGIONS 16384

long snapshot_pages_faults(void) {
    struct rusage usage;
    syscall(SYS_getrusage, RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static int scan(const snapshot_state *s, char *start, char *end, uint64_t *walk_end) {
    scan_order order = {
        .size = sizeof order,
        .start = (uint64_t)start,
        .end = (uint64_t)end,
        .regions = (uint64_t)s->scan_buffer,
        .n_regions = REGIONS,
        .inverted = PAGE_FILE,
        .all_of = PAGE_FILE,
        .any_of = PAGE_PRESENT | PAGE_SWAPPED,
        .returned = PAGE_PRESENT,
    };
    int n = ioctl(s->pagemap, ORDER_SCAN, &order);
    *walk_end = order.walk_end;
    return n;
}

/* The page map belongs to root while the process is not dumpable, so its own user cannot open it. The process is
 * dumpable only while it is opened; other processes of the same user could attach to it in that moment
 * (SECURITY.md). */
static int open_pagemap(void) {
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 || errno != EACCES || prctl(PR_GET_DUMPABLE) == 1) {
        return fd;
    }
    if (prctl(PR_SET_DUMPABLE, 1) != 0) {
        return -1;
    }
    fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    int why = errno;
    prctl(PR_SET_DUMPABLE, 0);
    errno = why;
    return fd;
}

snapshot_way snapshot_pages_choose(snapshot_state *s) {
    const char *forced = getenv("HOWDAH_SNAPSHOT_PAGES");
    if (forced != NULL && strcmp(forced, "fork") == 0) {
        return SNAPSHOT_WAY_FORK;
    }
    s->pagemap = open_pagemap();
    s->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    /* Not executable: a sandbox refuses memory that could become a program. Before Linux 6.3 there is no such flag. */
    s->memfd = memfd_create("howdah-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING | MEMORY_IS_NO_PROGRAM);
    if (s->memfd < 0 && errno == EINVAL) {
        s->memfd = memfd_create("howdah-snapshot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    s->scan_buffer_size = REGIONS * sizeof(scan_region);
    s->scan_buffer = snapshot_engine_memory(s->scan_buffer_size);
    if (s->pagemap < 0 || s->statm < 0 || s->memfd < 0 || s->scan_buffer == NULL) {
        return SNAPSHOT_WAY_FORK;
    }
    /* A page of the stack that was just written must be reported as anonymous. */
    volatile char probe = 1;
    char *page = (char *)((uintptr_t)&probe & ~(SNAPSHOT_PAGE - 1));
    uint64_t walk_end;
    bool pagemap_only = forced != NULL && strcmp(forced, "pagemap") == 0;
    if (!pagemap_only && scan(s, page, page + SNAPSHOT_PAGE, &walk_end) == 1) {
        return SNAPSHOT_WAY_SCAN;
    }
    uint64_t entry = 0;
    off_t at = (off_t)((uintptr_t)page / SNAPSHOT_PAGE * sizeof entry);
    if (pread(s->pagemap, &entry, sizeof entry, at) == sizeof entry && (entry & ENTRY_PRESENT) != 0 &&
        (entry & ENTRY_FILE) == 0) {
        return SNAPSHOT_WAY_PAGEMAP;
    }
    return SNAPSHOT_WAY_FORK;
}

static bool reopen(int fd, const char *path, int opened) {
    bool done = opened >= 0 && dup3(opened, fd, O_CLOEXEC) == fd;
    if (!done) {
        snapshot_set_reason("cannot open %s: %s", path, strerror(errno));
    }
    if (opened >= 0) {
        close(opened);
    }
    return done;
}

bool snapshot_pages_reopen(snapshot_state *s) {
    return reopen(s->pagemap, "/proc/self/pagemap", open_pagemap()) &&
           reopen(s->statm, "/proc/self/statm", open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
}

bool snapshot_pages_prepare(snapshot_state *s) {
    /* In the worst case, every second page is written. */
    s->max_hot = s->copy_length / SNAPSHOT_PAGE / 2 + s->n_ranges + 1;
    s->hot = snapshot_engine_memory(s->max_hot * sizeof *s->hot);
    if (s->hot == NULL) {
        snapshot_set_reason("no memory for the list of written pages");
        return false;
    }
    return true;
}

const snapshot_area *snapshot_pages_loose(const snapshot_state *s, const char *start, const char *end) {
    const snapshot_area *first = NULL;
    for (size_t i = 0; i < s->n_loose; i++) {
        const snapshot_area *area = &s->loose[i];
        if (area->start < end && area->end > start && (first == NULL || area->start < first->start)) {
            first = area;
        }
    }
    return first;
}

/* Adds written pages [start, end); the first range that may contain them is *range. */
static bool add_pages(snapshot_state *s, char *start, char *end, size_t *range) {
    while (start < end) {
        while (*range < s->n_ranges && s->ranges[*range].end <= start) {
            (*range)++;
        }
        if (*range == s->n_ranges) {
            return true;
        }
        const snapshot_range *in = &s->ranges[*range];
        if (start < in->start) {
            start = in->start;
            continue;
        }
        char *to = end < in->end ? end : in->end;
        const snapshot_area *loose = snapshot_pages_loose(s, start, to);
        if (loose != NULL && loose->start <= start) {
            start = loose->end;
            continue;
        }
        if (loose != NULL) {
            to = loose->start;
        }
        const char *from = s->copy + in->offset + (start - in->start);
        snapshot_run *last = s->n_hot > 0 ? &s->hot[s->n_hot - 1] : NULL;
        if (last != NULL && last->to + last->length == start && last->from + last->length == from) {
            last->length += (size_t)(to - start);
        } else if (s->n_hot == s->max_hot) {
            snapshot_set_reason("the list of written pages is full");
            return false;
        } else {
            s->hot[s->n_hot++] = (snapshot_run){start, from, (size_t)(to - start)};
        }
        start = to;
    }
    return true;
}

static bool find_by_scan(snapshot_state *s, char *start, char *end, size_t *range) {
    const scan_region *regions = s->scan_buffer;
    while (start < end) {
        uint64_t walk_end = 0;
        int n = scan(s, start, end, &walk_end);
        if (n < 0) {
            snapshot_set_reason("PAGEMAP_SCAN: %s", strerror(errno));
            return false;
        }
        for (int i = 0; i < n; i++) {
            if (!add_pages(s, (char *)regions[i].start, (char *)regions[i].end, range)) {
                return false;
            }
        }
        if ((char *)walk_end <= start) {
            return true;
        }
        start = (char *)walk_end;
    }
    return true;
}

static bool find_by_pagemap(snapshot_state *s, char *start, char *end, size_t *range) {
    uint64_t *entries = s->scan_buffer;
    while (start < end) {
        size_t wanted = (size_t)(end - start) / SNAPSHOT_PAGE;
        if (wanted > s->scan_buffer_size / sizeof *entries) {
            wanted = s->scan_buffer_size / sizeof *entries;
        }
        off_t at = (off_t)((uintptr_t)start / SNAPSHOT_PAGE * sizeof *entries);
        ssize_t n = pread(s->pagemap, entries, wanted * sizeof *entries, at);
        if (n <= 0) {
            snapshot_set_reason("/proc/self/pagemap: %s", n < 0 ? strerror(errno) : "it ends early");
            return false;
        }
        size_t got = (size_t)n / sizeof *entries;
        for (size_t i = 0; i < got; i++) {
            bool there = (entries[i] & (ENTRY_PRESENT | ENTRY_SWAPPED)) != 0;
            char *page = start + i * SNAPSHOT_PAGE;
            if (there && (entries[i] & ENTRY_FILE) == 0 && !add_pages(s, page, page + SNAPSHOT_PAGE, range)) {
                return false;
            }
        }
        start += got * SNAPSHOT_PAGE;
    }
    return true;
}

bool snapshot_pages_find(snapshot_state *s) {
    s->n_hot = 0;
    s->searches++;
    size_t range = 0;
    for (size_t i = 0; i < s->n_ranges;) {
        size_t last = i;
        while (last + 1 < s->n_ranges && s->ranges[last + 1].start - s->ranges[last].end < GAP) {
            last++;
        }
        char *start = s->ranges[i].start, *end = s->ranges[last].end;
        bool found = s->numbers.way == SNAPSHOT_WAY_SCAN ? find_by_scan(s, start, end, &range)
                                                         : find_by_pagemap(s, start, end, &range);
        if (!found) {
            return false;
        }
        i = last + 1;
    }
    return true;
}
