/* Included only by the files of the engine. */
#ifndef HOWDAH_SNAPSHOT_ENGINE_INTERNAL_H
#define HOWDAH_SNAPSHOT_ENGINE_INTERNAL_H

#include "snapshot/engine/snapshot.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <ucontext.h>

/* Size of a cache line in bytes. */
#define SNAPSHOT_LINE 64ul
#define SNAPSHOT_MAX_SPARED 32
#define SNAPSHOT_MAX_LOOSE 8
#define SNAPSHOT_MAX_KEPT 256
#define SNAPSHOT_MAX_SHARED 256
#define SNAPSHOT_MAX_LOCKS 16
#define SNAPSHOT_MAX_FILE_LOCKS 64
#define SNAPSHOT_LOCK_TEXT 80
/* Maximum number of a request's descriptors that cannot be closed, see locks.c. */
#define SNAPSHOT_MAX_PARKED 64
#define SNAPSHOT_MAX_OWN 1024
#define SNAPSHOT_REASON 256

/* Addresses that were mapped, whatever the mapping was. */
typedef struct snapshot_area {
    char *start, *end;
} snapshot_area;

/* Pages to restore. */
typedef struct snapshot_run {
    char *to;
    const char *from; /* in the copy */
    size_t length;
} snapshot_run;

/* A descriptor of the application, open at the snapshot. */
typedef struct snapshot_kept {
    int fd, twin; /* twin: a duplicate that scripts do not know of */
    dev_t device;
    ino_t inode;
    mode_t type;
    int status_flags, descriptor_flags;
    off_t position; /* -1: it has none */
    /* See descriptors.c. */
    bool private;
    bool own_in_forks; /* a fork of this process gets another one, see snapshot_own_in_forks() */
    off_t size;
    struct timespec changed;
    int unread;
    uint64_t state;
} snapshot_kept;

/* A lock of the process on one of the application's files, in the format of /proc/self/fdinfo, without its number. */
typedef struct snapshot_file_lock {
    int fd;
    char text[SNAPSHOT_LOCK_TEXT];
} snapshot_file_lock;

/* A lock on a file that the process holds for reading. */
typedef struct snapshot_lock {
    int fd;
    off_t start, length; /* length 0: to the end */
} snapshot_lock;

/* See lines.c. */
typedef struct snapshot_lines snapshot_lines;

/* PR_GET_NAME of prctl(2) */
#define SNAPSHOT_NAME_LENGTH 16

/* Kernel state of the process. */
typedef struct snapshot_process {
    int directory;  /* the current directory */
    int first_free; /* all lower descriptors are occupied at the snapshot */
    mode_t umask;
    bool had_children;
    char name[SNAPSHOT_NAME_LENGTH];
    unsigned touched, unseen; /* of snapshot_part */
    const char *spoiled;
    struct sigaction actions[NSIG];
    stack_t signal_stack;
    int priority;
    size_t n_kept, n_sockets;
    snapshot_kept kept[SNAPSHOT_MAX_KEPT];
    size_t n_file_locks, n_parked, n_parking;
    int parking[SNAPSHOT_MAX_PARKED]; /* descriptors of the request that stay open, in order */
    bool lock_lost;
    bool locks_touched; /* the request may have locked files */
    bool unfit;         /* a descriptor cannot be in a snapshot */
    snapshot_file_lock file_locks[SNAPSHOT_MAX_FILE_LOCKS];
    unsigned char open_before[1024]; /* bitmap of descriptors that were open before the application ran */
} snapshot_process;

/* All state of the engine. Its memory is left out of the snapshot, so a restore does not change it. */
typedef struct snapshot_state {
    snapshot_numbers numbers;
    bool taken;
    bool failed;
    char reason[SNAPSHOT_REASON];

    size_t n_ranges, max_ranges;
    snapshot_range *ranges;
    size_t n_spared;
    snapshot_area spared[SNAPSHOT_MAX_SPARED];
    size_t n_loose;
    snapshot_area loose[SNAPSHOT_MAX_LOOSE]; /* whole pages */
    size_t heap_loose;                       /* index of the C library's heap, if there is one */
    size_t n_layout;
    snapshot_area *layout; /* everything mapped at the snapshot */
    int memfd;
    ino_t memfd_inode;
    char *copy; /* the memfd, mapped once more */
    size_t copy_length;

    int pagemap;
    int statm;
    uint64_t searches; /* number of searches that `hot` is the result of */
    size_t n_hot, max_hot;
    snapshot_run *hot;
    bool copies_differences;
    snapshot_lines *lines; /* NULL: written pages are compared or copied, see copy.c */
    unsigned char *marks;  /* of each page of the copy, see trim.c */
    uint64_t watch_from;   /* number of the restore at which the next watch begins */
    void *scan_buffer;
    size_t scan_buffer_size;
    long faults;
    long size_pages; /* pages of the address space after the last restore */
    long size_now;   /* the same when snapshot_process_check() ran */
    bool restorable; /* snapshot_restorable() has returned true, and snapshot_restore() is called next */

    void *program_break;
    char *stack_start, *stack_end, *stack_copy;

    size_t n_shared_before;
    snapshot_area shared_before[SNAPSHOT_MAX_SHARED]; /* shared mappings that existed before the application ran */
    size_t n_lasting;
    snapshot_area lasting[SNAPSHOT_MAX_LOOSE];
    size_t n_locks;
    snapshot_lock locks[SNAPSHOT_MAX_LOCKS];
    size_t n_own;
    snapshot_run *own; /* pages whose content in this process's snapshot differs from the memfd */

    char *text; /* for /proc files */
    size_t text_size;
    snapshot_process process;

    ucontext_t context; /* where snapshot_take() returns */
    ucontext_t engine;  /* the engine's own stack, signals blocked */
    char *engine_stack;
    size_t engine_stack_size;
} snapshot_state;

/* --- state.c --- */
extern snapshot_state *snapshot_state_;

void snapshot_set_reason(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Runs a step on the engine's stack; the step ends by returning from snapshot_take(). */
void snapshot_on_engine_stack(void (*step)(void)) __attribute__((noreturn));
/* Logs why memory is inconsistent, and ends the process. */
void snapshot_die(const snapshot_state *s) __attribute__((noreturn));

/* A line of /proc/self/maps. */
typedef struct snapshot_mapping {
    char *start, *end;
    int protection;
    unsigned long inode;
    bool shared, stack, special; /* special: [vdso], [vvar], [vsyscall] */
} snapshot_mapping;

/* --- maps.c --- */

/* Reads a file below /proc into the engine's buffer. Returns its length, or -1. */
ssize_t snapshot_maps_read(snapshot_state *s, const char *path);
/* Takes the next mapping line of /proc/self/maps (or smaps); other lines are skipped. False at the end. */
bool snapshot_maps_next(const char **text, snapshot_mapping *mapping);
bool snapshot_maps_store(snapshot_state *s);
bool snapshot_maps_replace(snapshot_state *s);
/* The range that the snapshot has of this address, or NULL. */
const snapshot_range *snapshot_range_of(const snapshot_state *s, const void *address);
/* Called after a fork: gives this process a separate view of the copy, and records the current layout. */
bool snapshot_maps_adopt(snapshot_state *s);
/* Unmaps new mappings and maps again what is missing or has other rights. */
bool snapshot_maps_reconcile(snapshot_state *s);
/* Size of the address space in pages, or -1. */
long snapshot_maps_size(const snapshot_state *s);

/* --- pages.c --- */
snapshot_way snapshot_pages_choose(snapshot_state *s);
/* Called after a fork: opens the /proc files of this process. */
bool snapshot_pages_reopen(snapshot_state *s);
bool snapshot_pages_prepare(snapshot_state *s);
/* Returns the first loose area that overlaps [start, end), or NULL. */
const snapshot_area *snapshot_pages_loose(const snapshot_state *s, const char *start, const char *end);
/* Finds the written pages. */
bool snapshot_pages_find(snapshot_state *s);
long snapshot_pages_faults(void);

/* --- copy.c --- */
void snapshot_copy_prepare(snapshot_state *s);
void snapshot_copy_back(snapshot_state *s);

/* --- differences.c --- */
/* True if this processor compares a page as fast as it copies one. */
bool snapshot_differences_are_seen(void);
/* Restores one page, storing only differences. Returns a bit for each line that differed. Requires AVX-512. */
uint64_t snapshot_differences_copy(char *to, const char *from);

/* --- lines.c --- */
/* Sets s->lines, if this processor and the memory allow it. */
void snapshot_lines_prepare(snapshot_state *s);
/* Restores the pages by lines. False when they have to be compared or copied this time. */
bool snapshot_lines_put_back(snapshot_state *s);
/* Forgets which lines have differed: that may have been long ago. */
void snapshot_lines_forget(snapshot_state *s);

/* --- trim.c --- */
bool snapshot_trim_prepare(snapshot_state *s);
/* While a watch lasts, notes which written pages differ from the snapshot. Called before they are copied back. */
void snapshot_trim_watch(snapshot_state *s);
/* True if a watch has lasted long enough. */
bool snapshot_trim_due(const snapshot_state *s);
/* Ends a watch and drops the pages that did not differ; returns their number. The list of written pages is out of date
 * then. */
size_t snapshot_trim_end(snapshot_state *s);
/* Never drops this page of the copy. */
void snapshot_trim_never(snapshot_state *s, const char *from);

/* --- process.c --- */
void snapshot_process_begin(snapshot_state *s);
bool snapshot_process_store(snapshot_state *s);
/* False: this process cannot be restored (reason set). */
bool snapshot_process_check(snapshot_state *s);
/* Restores the application's descriptors. False when that is impossible (reason set). */
bool snapshot_process_rewind(const snapshot_process *p);
bool snapshot_process_restore(snapshot_state *s);
/* Called after a fork: occupies every descriptor below the highest one again; there are no children. */
bool snapshot_process_adopt(snapshot_state *s);

/* --- descriptors.c --- */
/* False: such a descriptor cannot be restored (reason set). */
bool snapshot_kept_store(snapshot_kept *kept);
/* False: the request has changed the kernel state of a descriptor (reason set). */
bool snapshot_kept_check(const snapshot_process *p);
/* Occupies every free descriptor below the highest open one. */
bool snapshot_descriptors_fill(snapshot_process *p);

/* --- locks.c --- */
bool snapshot_locks_store(snapshot_process *p);
/* Releases locks that the request has added. False if a lock was lost (reason set). */
bool snapshot_locks_check(snapshot_state *s);
/* Closes the descriptors that requests have opened, except those whose closing would release locks. */
void snapshot_locks_close(snapshot_process *p);

/* --- share.c --- */
void snapshot_share_begin(snapshot_state *s);
/* Restores the content that differs from the memfd, after mappings were repaired. */
void snapshot_share_mend(const snapshot_state *s);

#endif
