/* The process's mappings: finds those that are private and writable, copies them into a memfd, maps that copy over the
 * originals, and restores the layout when a request has changed it.
 *
 * A restored range is a private mapping of the memfd: a page that a request writes becomes anonymous, which is how
 * pages.c distinguishes written pages. */
#include "snapshot/engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t snapshot_maps_read(snapshot_state *s, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snapshot_set_reason("cannot open %s: %s", path, strerror(errno));
        return -1;
    }
    size_t length = 0;
    ssize_t n;
    while (length < s->text_size - 1 && (n = read(fd, s->text + length, s->text_size - 1 - length)) > 0) {
        length += (size_t)n;
    }
    close(fd);
    if (length == s->text_size - 1) {
        snapshot_set_reason("%s is too long: the process has too many mappings", path);
        return -1;
    }
    s->text[length] = '\0';
    return (ssize_t)length;
}

/* Skips a word and the blanks after it. */
static const char *next_word(const char *at) {
    while (*at != ' ' && *at != '\n' && *at != '\0') {
        at++;
    }
    while (*at == ' ') {
        at++;
    }
    return at;
}

static char *hexadecimal(const char **at) {
    unsigned long value = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9') {
            value = value << 4 | (unsigned long)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value << 4 | (unsigned long)(c - 'a' + 10);
        } else {
            return (char *)value;
        }
    }
}

bool snapshot_maps_next(const char **text, snapshot_mapping *mapping) {
    for (const char *line = *text; *line != '\0';) {
        const char *end = strchrnul(line, '\n');
        *text = *end == '\n' ? end + 1 : end;
        const char *at = line;
        mapping->start = hexadecimal(&at);
        if (at == line || *at != '-') {
            line = *text;
            continue;
        }
        at++;
        mapping->end = hexadecimal(&at);
        at++;
        mapping->protection =
            (at[0] == 'r' ? PROT_READ : 0) | (at[1] == 'w' ? PROT_WRITE : 0) | (at[2] == 'x' ? PROT_EXEC : 0);
        mapping->shared = at[3] == 's';
        /* Rights, offset, device, inode. */
        mapping->inode = strtoul(next_word(next_word(next_word(at))), NULL, 10);
        const char *name = memchr(at, '[', (size_t)(end - at));
        mapping->stack = name != NULL && strncmp(name, "[stack]", 7) == 0;
        mapping->special = name != NULL && name[1] == 'v';
        return true;
    }
    return false;
}

static bool add_range(snapshot_state *s, char *start, char *end, int protection) {
    if (s->n_ranges == s->max_ranges) {
        snapshot_set_reason("the process has more than %zu writable mappings", s->max_ranges);
        return false;
    }
    s->ranges[s->n_ranges++] = (snapshot_range){start, end, s->copy_length, protection};
    s->copy_length += (size_t)(end - start);
    return true;
}

/* Adds a mapping without its spared parts: the kernel merges similar neighbours into one mapping. */
static bool add_without_excluded(snapshot_state *s, char *start, char *end, int protection) {
    while (start < end) {
        const snapshot_area *first = NULL;
        for (size_t i = 0; i < s->n_spared; i++) {
            const snapshot_area *area = &s->spared[i];
            if (area->end > start && area->start < end && (first == NULL || area->start < first->start)) {
                first = area;
            }
        }
        char *stop = first == NULL ? end : first->start;
        if (start < stop && !add_range(s, start, stop, protection)) {
            return false;
        }
        start = first == NULL ? end : first->end;
    }
    return true;
}

/* Mappings that must be empty in a child (MADV_WIPEONFORK) or that the kernel may drop hold random state of the C
 * library and cryptographic libraries. Restoring them would repeat random numbers. */
static bool exclude_random_state(snapshot_state *s) {
    if (snapshot_maps_read(s, "/proc/self/smaps") < 0) {
        return false;
    }
    const char *text = s->text;
    snapshot_mapping mapping;
    while (snapshot_maps_next(&text, &mapping)) {
        const char *flags = strstr(text, "VmFlags:");
        if (flags == NULL) {
            break;
        }
        const char *end = strchrnul(flags, '\n');
        bool wiped = memmem(flags, (size_t)(end - flags), " wf", 3) != NULL;
        bool dropped = memmem(flags, (size_t)(end - flags), " dp", 3) != NULL;
        if ((wiped || dropped) && !mapping.shared &&
            !snapshot_spare(mapping.start, (size_t)(mapping.end - mapping.start))) {
            snapshot_set_reason("too many mappings with random state");
            return false;
        }
    }
    return true;
}

static bool list_ranges(snapshot_state *s) {
    if (!exclude_random_state(s) || snapshot_maps_read(s, "/proc/self/maps") < 0) {
        return false;
    }
    const char *text = s->text;
    snapshot_mapping mapping;
    while (snapshot_maps_next(&text, &mapping)) {
        if (mapping.stack) {
            s->stack_end = mapping.end;
            continue;
        }
        int wanted = PROT_READ | PROT_WRITE;
        bool private = !mapping.shared && !mapping.special && (mapping.protection & wanted) == wanted;
        if (private && !add_without_excluded(s, mapping.start, mapping.end, mapping.protection)) {
            return false;
        }
    }
    s->numbers.bytes = s->copy_length;
    return true;
}

const snapshot_range *snapshot_range_of(const snapshot_state *s, const void *address) {
    size_t low = 0, high = s->n_ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->ranges[middle].end <= (const char *)address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const snapshot_range *range = &s->ranges[low];
    return low < s->n_ranges && range->start <= (const char *)address ? range : NULL;
}

static bool is_zero(const char *page) {
    const uint64_t *words = (const uint64_t *)page;
    for (size_t i = 0; i < SNAPSHOT_PAGE / sizeof *words; i += 8) {
        uint64_t any = words[i] | words[i + 1] | words[i + 2] | words[i + 3] | words[i + 4] | words[i + 5] |
                       words[i + 6] | words[i + 7];
        if (any != 0) {
            return false;
        }
    }
    return true;
}

bool snapshot_maps_store(snapshot_state *s) {
    if (!list_ranges(s)) {
        return false;
    }
    if (ftruncate(s->memfd, (off_t)s->copy_length) != 0) {
        snapshot_set_reason("cannot size the snapshot's memory: %s", strerror(errno));
        return false;
    }
    struct stat about;
    fstat(s->memfd, &about);
    s->memfd_inode = about.st_ino;
    s->copy = mmap(NULL, s->copy_length, PROT_READ | PROT_WRITE, MAP_SHARED, s->memfd, 0);
    if (s->copy == MAP_FAILED) {
        snapshot_set_reason("cannot map the snapshot's memory: %s", strerror(errno));
        return false;
    }
    /* Pages of zeros stay holes: most of a heap's reserve is never touched. */
    for (size_t i = 0; i < s->n_ranges; i++) {
        const snapshot_range *range = &s->ranges[i];
        for (const char *page = range->start; page < range->end; page += SNAPSHOT_PAGE) {
            if (!is_zero(page) && snapshot_pages_loose(s, page, page + SNAPSHOT_PAGE) == NULL) {
                memcpy(s->copy + range->offset + (page - range->start), page, SNAPSHOT_PAGE);
                s->numbers.stored += SNAPSHOT_PAGE;
            }
        }
    }
    return true;
}

static bool map_range(const snapshot_state *s, const snapshot_range *range, char *start, char *end) {
    size_t length = (size_t)(end - start);
    void *at = mmap(start, length, range->protection, MAP_PRIVATE | MAP_FIXED, s->memfd,
                    (off_t)(range->offset + (size_t)(start - range->start)));
    if (at == MAP_FAILED) {
        snapshot_set_reason("cannot map the snapshot at %p (%zu bytes%s): %s", (void *)start, length,
                            (range->protection & PROT_EXEC) != 0 ? ", executable: try pcre.jit=0" : "",
                            strerror(errno));
        return false;
    }
    return true;
}

/* Finds the next part of a range that is stored, not a hole, from an address on. False at the end. */
static bool next_stored(const snapshot_state *s, const snapshot_range *range, char **start, char **end) {
    char *base = range->start - range->offset;
    off_t data = lseek(s->memfd, *start - base, SEEK_DATA);
    off_t hole = data < 0 ? -1 : lseek(s->memfd, data, SEEK_HOLE);
    if (hole < 0 || base + data >= range->end) {
        return false;
    }
    *start = base + data;
    *end = base + hole < range->end ? base + hole : range->end;
    return true;
}

/* Maps the stored pages of a range for reading, so that later only writing causes faults. */
static void populate(const snapshot_state *s, const snapshot_range *range) {
#ifdef MADV_POPULATE_READ
    char *end;
    for (char *start = range->start; start < range->end && next_stored(s, range, &start, &end); start = end) {
        madvise(start, (size_t)(end - start), MADV_POPULATE_READ);
    }
#endif
}

size_t snapshot_find(const void *what, size_t length, void **places, size_t most) {
    const snapshot_state *s = snapshot_state_;
    size_t n = 0;
    for (size_t i = 0; i < s->n_ranges; i++) {
        const snapshot_range *range = &s->ranges[i];
        char *end;
        for (char *start = range->start; start < range->end && next_stored(s, range, &start, &end); start = end) {
            for (char *at = start; n < most && (at = memmem(at, (size_t)(end - at), what, length)) != NULL; at++) {
                if ((uintptr_t)at % 4 == 0) {
                    places[n++] = at;
                }
            }
        }
    }
    return n;
}

/* The memfd is not written to any more: a change by one process would appear in all that share it. */
static bool map_own_copy(snapshot_state *s) {
    void *copy = mmap(s->copy, s->copy_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, s->memfd, 0);
    if (copy == MAP_FAILED) {
        snapshot_set_reason("cannot map the snapshot's memory: %s", strerror(errno));
        return false;
    }
    return true;
}

/* Records the layout after the engine's own changes: a request may leave exactly these mappings. */
static bool remember_layout(snapshot_state *s) {
    if (snapshot_maps_read(s, "/proc/self/maps") < 0) {
        return false;
    }
    const char *text = s->text;
    snapshot_mapping mapping;
    s->n_layout = 0;
    while (snapshot_maps_next(&text, &mapping)) {
        if (mapping.stack || mapping.special) {
            continue;
        }
        if (s->n_layout == s->max_ranges) {
            snapshot_set_reason("the process has more than %zu mappings", s->max_ranges);
            return false;
        }
        s->layout[s->n_layout++] = (snapshot_area){mapping.start, mapping.end};
    }
    for (size_t i = 0; i < s->n_ranges; i++) {
        populate(s, &s->ranges[i]);
    }
    return true;
}

/* Releases the pages of the text buffer, of which smaps takes half a megabyte. */
static void release_text(const snapshot_state *s) {
    madvise(s->text, s->text_size, MADV_DONTNEED);
}

/* The value in kB of a field of smaps, for the mapping whose line ends before `text`. */
static unsigned long field(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at == NULL ? ULONG_MAX : strtoul(at + strlen(name), NULL, 10);
}

void snapshot_release_files(void) {
    snapshot_state *s = snapshot_state_;
    if (snapshot_maps_read(s, "/proc/self/smaps") < 0) {
        return;
    }
    const char *text = s->text;
    snapshot_mapping mapping;
    while (snapshot_maps_next(&text, &mapping)) {
        bool file = !mapping.shared && mapping.inode != 0 && mapping.inode != s->memfd_inode;
        /* Relocated pages have no copy in the file. */
        if (file && (mapping.protection & PROT_WRITE) == 0 && field(text, "\nAnonymous:") == 0 &&
            field(text, "\nSwap:") == 0) {
            madvise(mapping.start, (size_t)(mapping.end - mapping.start), MADV_DONTNEED);
        }
    }
    release_text(s);
}

bool snapshot_maps_replace(snapshot_state *s) {
    if (!map_own_copy(s)) {
        return false;
    }
    fcntl(s->memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
    for (size_t i = 0; i < s->n_ranges; i++) {
        if (!map_range(s, &s->ranges[i], s->ranges[i].start, s->ranges[i].end)) {
            return false;
        }
    }
    bool known = remember_layout(s);
    release_text(s);
    return known;
}

bool snapshot_maps_adopt(snapshot_state *s) {
    return map_own_copy(s) && remember_layout(s);
}

long snapshot_maps_size(const snapshot_state *s) {
    char text[64];
    ssize_t n = syscall(SYS_pread64, s->statm, text, sizeof text - 1, 0);
    if (n <= 0) {
        return -1;
    }
    long pages = 0;
    for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++) {
        pages = pages * 10 + (text[i] - '0');
    }
    return pages;
}

/* Unmaps the parts of [start, end) that were not mapped at the snapshot. `layout` is the first area that may
 * overlap. */
static void unmap_new(const snapshot_state *s, char *start, char *end, size_t *layout) {
    while (*layout < s->n_layout && s->layout[*layout].end <= start) {
        (*layout)++;
    }
    size_t i = *layout;
    while (start < end) {
        if (i == s->n_layout || s->layout[i].start >= end) {
            munmap(start, (size_t)(end - start));
            return;
        }
        if (start < s->layout[i].start) {
            munmap(start, (size_t)(s->layout[i].start - start));
        }
        start = s->layout[i].end;
        i++;
    }
}

/* Ensures that a range is mapped completely, with its rights; `text` is at the first mapping that may overlap. */
static bool restore_range(const snapshot_state *s, const snapshot_range *range, const char **text) {
    char *at = range->start;
    snapshot_mapping mapping;
    const char *rest = *text;
    while (at < range->end) {
        const char *before = rest;
        if (!snapshot_maps_next(&rest, &mapping) || mapping.start >= range->end) {
            rest = before;
            return map_range(s, range, at, range->end);
        }
        if (mapping.end <= at) {
            *text = rest;
            continue;
        }
        if (mapping.start > at && !map_range(s, range, at, mapping.start)) {
            return false;
        }
        char *from = mapping.start > at ? mapping.start : at;
        char *to = mapping.end < range->end ? mapping.end : range->end;
        /* Replaces a mapping that a request has put over the snapshot's memory. */
        if ((mapping.shared || mapping.inode != s->memfd_inode) && !map_range(s, range, from, to)) {
            return false;
        }
        if (mapping.protection != range->protection && mprotect(from, (size_t)(to - from), range->protection) != 0) {
            snapshot_set_reason("cannot restore the protection of memory at %p", (void *)from);
            return false;
        }
        at = to;
        if (mapping.end > range->end) {
            rest = before;
        }
    }
    *text = rest;
    return true;
}

bool snapshot_maps_reconcile(snapshot_state *s) {
    if (snapshot_maps_read(s, "/proc/self/maps") < 0) {
        return false;
    }
    const char *text = s->text;
    snapshot_mapping mapping;
    size_t layout = 0;
    while (snapshot_maps_next(&text, &mapping)) {
        if (!mapping.stack && !mapping.special) {
            unmap_new(s, mapping.start, mapping.end, &layout);
        }
    }
    text = s->text;
    for (size_t i = 0; i < s->n_ranges; i++) {
        if (!restore_range(s, &s->ranges[i], &text)) {
            return false;
        }
    }
    return true;
}
