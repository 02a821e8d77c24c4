/* Forks of a process that has taken its snapshot; they continue as separate workers without booting. This file checks
 * whether the process can be forked at all, renews what a fork must not share, and finds the memory in which a fork
 * differs.
 *
 * All of them map the same memfd. A fork has pages that differ from it, because they identify the process (the C
 * library's thread number, the lane, descriptors). When it becomes a worker, such pages are copied into its own view of
 * the memfd, so that a restore brings back the worker's own state, and everything else stays shared. */
#include "snapshot/engine/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bytes of the C library's free reserve that are checked again in a fork, see save_used_heap(). */
#define PROBE (1536 * 1024)
/* Bytes of the C library's metadata at either end of a free block. */
#define HEAP_NOTES 128

void snapshot_share_begin(snapshot_state *s) {
    if (snapshot_maps_read(s, "/proc/self/maps") < 0) {
        return;
    }
    const char *text = s->text;
    snapshot_mapping mapping;
    while (snapshot_maps_next(&text, &mapping)) {
        if (mapping.shared && s->n_shared_before < SNAPSHOT_MAX_SHARED) {
            s->shared_before[s->n_shared_before++] = (snapshot_area){mapping.start, mapping.end};
        }
    }
}

static bool is_within_areas(const snapshot_area *areas, size_t n, const snapshot_mapping *mapping) {
    for (size_t i = 0; i < n; i++) {
        if (mapping->start < areas[i].end && mapping->end > areas[i].start) {
            return true;
        }
    }
    return false;
}

/* Checks for memory that forks would share although each worker should have its own, or that they would not inherit. */
static bool memory_can_be_forked(snapshot_state *s) {
    if (snapshot_maps_read(s, "/proc/self/smaps") < 0) {
        return false;
    }
    const char *text = s->text;
    snapshot_mapping mapping;
    while (snapshot_maps_next(&text, &mapping)) {
        if (mapping.shared && (mapping.protection & PROT_WRITE) != 0 &&
            !is_within_areas(s->shared_before, s->n_shared_before, &mapping) &&
            !is_within_areas(s->lasting, s->n_lasting, &mapping)) {
            snapshot_set_reason("shared memory was mapped at boot");
            return false;
        }
        const char *flags = strstr(text, "VmFlags:");
        if (flags == NULL) {
            break;
        }
        const char *end = strchrnul(flags, '\n');
        bool left_out = memmem(flags, (size_t)(end - flags), " dc", 3) != NULL;
        /* The lane, which was mapped before, is left out on purpose. */
        bool lane = mapping.shared && is_within_areas(s->shared_before, s->n_shared_before, &mapping);
        if (left_out && !lane && !mapping.special) {
            snapshot_set_reason("memory is mapped that forks do not inherit");
            return false;
        }
    }
    return true;
}

/* Parses a lock of /proc/self/fdinfo: "lock:  1: POSIX  ADVISORY  READ  4711 00:01:1029 1 1". False: it cannot be
 * shared. */
static bool note_lock(snapshot_state *s, int fd, const char *line) {
    char kind[16] = "", access[16] = "", first[24] = "", last[24] = "";
    if (sscanf(line, "lock: %*s %15s %*s %15s %*s %*s %23s %23s", kind, access, first, last) != 4 ||
        strcmp(kind, "POSIX") != 0 || strcmp(access, "READ") != 0 || s->n_locks == SNAPSHOT_MAX_LOCKS) {
        return false;
    }
    off_t start = strtoll(first, NULL, 10);
    off_t length = strcmp(last, "EOF") == 0 ? 0 : strtoll(last, NULL, 10) - start + 1;
    s->locks[s->n_locks++] = (snapshot_lock){fd, start, length};
    return true;
}

static bool note_locks(snapshot_state *s, int fd) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "re");
    bool shareable = true;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "lock:", 5) == 0 && !note_lock(s, fd, line)) {
            snapshot_set_reason("a file is locked (descriptor %d)", fd);
            shareable = false;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return shareable;
}

/* OPcache holds a lock that means "this process uses the shared memory"; locks are not inherited by a fork. */
static bool locks_can_be_taken(snapshot_state *s) {
    s->n_locks = 0;
    for (int fd = 0; fd < s->process.first_free; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 && !note_locks(s, fd)) {
            return false;
        }
    }
    return true;
}

/* Opens a descriptor's file again, with a separate position, and replaces the descriptor. */
static bool reopen_file(const snapshot_kept *kept) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", kept->fd);
    int own = open(path, (kept->status_flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_CLOEXEC);
    if (own < 0) {
        return false;
    }
    int on_exec = (kept->descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0;
    bool done = lseek(own, kept->position, SEEK_SET) == kept->position && dup3(own, kept->fd, on_exec) == kept->fd &&
                dup3(own, kept->twin, O_CLOEXEC) == kept->twin;
    close(own);
    return done;
}

static bool is_read_only_file(const snapshot_kept *kept) {
    return S_ISREG(kept->type) && (kept->status_flags & O_ACCMODE) == O_RDONLY;
}

static bool is_locked(const snapshot_state *s, int fd) {
    for (size_t i = 0; i < s->n_locks; i++) {
        if (s->locks[i].fd == fd) {
            return true;
        }
    }
    return false;
}

/* Several processes can share devices such as /dev/null, and files that are only appended to. A file that is read is
 * opened again, unless that would lose a lock. */
static bool descriptor_can_be_forked(const snapshot_state *s, const snapshot_kept *kept) {
    bool appends =
        S_ISREG(kept->type) && (kept->status_flags & O_ACCMODE) == O_WRONLY && (kept->status_flags & O_APPEND) != 0;
    bool reads = is_read_only_file(kept) && !is_locked(s, kept->fd);
    if (kept->own_in_forks || S_ISCHR(kept->type) || appends || (reads && reopen_file(kept))) {
        return true;
    }
    char path[64], target[160];
    snprintf(path, sizeof path, "/proc/self/fd/%d", kept->fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    const char *what = S_ISSOCK(kept->type)   ? "a connection"
                       : S_ISFIFO(kept->type) ? "a pipe"
                       : S_ISREG(kept->type)  ? "a file"
                       : S_ISDIR(kept->type)  ? "a directory"
                                              : "a descriptor";
    snapshot_set_reason("%s was opened at boot and is still open: %s", what, target);
    return false;
}

const char *snapshot_unshareable(void) {
    snapshot_state *s = snapshot_state_;
    if (s->process.had_children) {
        return "a process was started at boot and is still running";
    }
    /* Opening a file again releases its locks, including those of another descriptor: they are checked first. */
    if (!locks_can_be_taken(s)) {
        return s->reason;
    }
    for (size_t i = 0; i < s->process.n_kept; i++) {
        if (!descriptor_can_be_forked(s, &s->process.kept[i])) {
            return s->reason;
        }
    }
    return memory_can_be_forked(s) ? NULL : s->reason;
}

int snapshot_file(const snapshot_range **ranges, size_t *n) {
    const snapshot_state *s = snapshot_state_;
    *ranges = s->ranges;
    *n = s->n_ranges;
    return s->numbers.way == SNAPSHOT_WAY_FORK ? -1 : s->memfd;
}

bool snapshot_forked(void) {
    snapshot_state *s = snapshot_state_;
    for (size_t i = 0; i < s->n_locks; i++) {
        const snapshot_lock *lock = &s->locks[i];
        struct flock order = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = lock->start, .l_len = lock->length};
        if (fcntl(lock->fd, F_SETLK, &order) != 0) {
            snapshot_set_reason("cannot lock descriptor %d: %s", lock->fd, strerror(errno));
            return false;
        }
    }
    for (size_t i = 0; i < s->process.n_kept; i++) {
        if (is_read_only_file(&s->process.kept[i]) && !reopen_file(&s->process.kept[i])) {
            snapshot_set_reason("cannot open the file of descriptor %d again", s->process.kept[i].fd);
            return false;
        }
    }
    return true;
}

/* The C library's free reserve is neither stored nor restored, as it is never read. In this process, a part of it is in
 * use: for the lane, and for the C library's metadata in free blocks. Only what is one free block now stays left
 * out. */
static void save_used_heap(snapshot_state *s) {
    if (s->heap_loose >= s->n_loose) {
        return;
    }
    void *probe = malloc(PROBE);
    uintptr_t at = (uintptr_t)probe;
    free(probe);
    snapshot_area *area = &s->loose[s->heap_loose];
    char *start = (char *)((at + HEAP_NOTES + SNAPSHOT_PAGE - 1) & ~(SNAPSHOT_PAGE - 1));
    char *end = (char *)((at + PROBE - HEAP_NOTES) & ~(SNAPSHOT_PAGE - 1));
    area->start = start > area->start ? start : area->start;
    area->end = end < area->end ? end : area->end;
    if (at == 0 || area->start >= area->end) {
        area->start = area->end = NULL;
    }
}

/* Notes a page whose content in this process's snapshot differs from the memfd. */
static bool note_own_page(snapshot_state *s, char *to, const char *from) {
    for (size_t i = 0; i < s->n_own; i++) {
        if (s->own[i].to == to) {
            return true;
        }
    }
    if (s->n_own == SNAPSHOT_MAX_OWN) {
        snapshot_set_reason("a forked worker differs from the application in too many pages");
        return false;
    }
    snapshot_trim_never(s, from);
    s->own[s->n_own++] = (snapshot_run){to, from, SNAPSHOT_PAGE};
    return true;
}

bool snapshot_change(void *place, const void *bytes, size_t length) {
    snapshot_state *s = snapshot_state_;
    const snapshot_range *range = snapshot_range_of(s, place);
    char *start = place;
    if (range == NULL || start + length > range->end) {
        snapshot_set_reason("memory to be changed is not in the snapshot");
        return false;
    }
    char *copy = s->copy + range->offset + (start - range->start);
    memcpy(start, bytes, length);
    memcpy(copy, bytes, length);
    snapshot_lines_forget(s);
    size_t before = (uintptr_t)start % SNAPSHOT_PAGE;
    for (size_t at = 0; at < before + length; at += SNAPSHOT_PAGE) {
        if (!note_own_page(s, start - before + at, copy - before + at)) {
            return false;
        }
    }
    return true;
}

/* Copies written pages that differ from the memfd into this process's view of it. */
static bool keep_own_pages(snapshot_state *s) {
    s->n_own = 0;
    for (size_t i = 0; i < s->n_hot; i++) {
        const snapshot_run *run = &s->hot[i];
        for (size_t at = 0; at < run->length; at += SNAPSHOT_PAGE) {
            if (memcmp(run->to + at, run->from + at, SNAPSHOT_PAGE) == 0) {
                continue;
            }
            if (!note_own_page(s, run->to + at, run->from + at)) {
                return false;
            }
            memcpy((char *)run->from + at, run->to + at, SNAPSHOT_PAGE);
        }
    }
    return true;
}

/* Runs on the engine's stack. Returns from snapshot_take(). */
static void adopt(void) {
    snapshot_state *s = snapshot_state_;
    if ((void *)syscall(SYS_brk, 0) != s->program_break) {
        snapshot_set_reason("the C library's heap has grown since the snapshot");
        snapshot_die(s);
    }
    if (!snapshot_pages_reopen(s) || !snapshot_process_adopt(s) || !snapshot_maps_adopt(s) || !snapshot_pages_find(s) ||
        !keep_own_pages(s)) {
        snapshot_die(s);
    }
#ifdef MADV_POPULATE_WRITE
    /* Makes the pages that requests usually write to anonymous; otherwise each would be a fault in the first
     * request. */
    for (size_t i = 0; i < s->n_hot; i++) {
        madvise(s->hot[i].to, s->hot[i].length, MADV_POPULATE_WRITE);
    }
#endif
    s->numbers.scans = s->numbers.layouts = 0;
    s->size_pages = snapshot_maps_size(s);
    s->faults = snapshot_pages_faults();
    memcpy(s->stack_start, s->stack_copy, (size_t)(s->stack_end - s->stack_start));
    setcontext(&s->context);
    _exit(EXIT_FAILURE);
}

void snapshot_adopt(void) {
    snapshot_state *s = snapshot_state_;
    if (s->numbers.way != SNAPSHOT_WAY_FORK) {
        save_used_heap(s);
        snapshot_on_engine_stack(adopt);
    }
    for (size_t i = 0; i < s->n_lasting; i++) {
        const snapshot_area *area = &s->lasting[i];
        size_t length = (size_t)(area->end - area->start);
        void *fresh = mmap(area->start, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (fresh == MAP_FAILED) {
            snapshot_set_reason("no memory for the snapshot engine");
            snapshot_die(s);
        }
    }
    if (!snapshot_process_adopt(s)) {
        snapshot_die(s);
    }
}

void snapshot_share_mend(const snapshot_state *s) {
    for (size_t i = 0; i < s->n_own; i++) {
        memcpy(s->own[i].to, s->own[i].from, SNAPSHOT_PAGE);
    }
}
