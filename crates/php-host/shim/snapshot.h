/* The snapshot engine: takes a picture of this process and brings the process back to it, again and again. It knows
 * nothing of PHP; mode_snapshot.c decides when, snapshot_request.c what happens in between. How it works and what it
 * cannot do is in docs/internals/snapshot.md.
 *
 * snapshot.c           take and restore: order of the steps, the switch to the engine's own stack, fork per request
 * snapshot_maps.c      the process's mappings: listing, copying into a memfd, putting back the layout
 * snapshot_pages.c     which pages were written
 * snapshot_copy.c      putting them back
 * snapshot_lines.c     the same without reading the snapshot, for processors that can
 * snapshot_trim.c      dropping pages that need no copying back any more
 * snapshot_process.c   what the kernel keeps beside memory: descriptors, directory, timers, signals, children
 * snapshot_kept.c      what the kernel keeps behind the application's descriptors
 * snapshot_locks.c     locks on the application's files
 * snapshot_share.c     forks of the process that go on with the same snapshot */
#ifndef HOWDAH_SNAPSHOT_H
#define HOWDAH_SNAPSHOT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <ucontext.h>

#define SNAPSHOT_PAGE 4096ul
/* Of a processor's cache. */
#define SNAPSHOT_LINE 64ul
#define SNAPSHOT_MAX_SPARED 32
#define SNAPSHOT_MAX_LOOSE 8
#define SNAPSHOT_MAX_KEPT 256
#define SNAPSHOT_MAX_SHARED 256
#define SNAPSHOT_MAX_LOCKS 16
#define SNAPSHOT_MAX_FILE_LOCKS 64
#define SNAPSHOT_LOCK_TEXT 80
/* Descriptors of requests that cannot be closed, see snapshot_locks.c. */
#define SNAPSHOT_MAX_PARKED 64
#define SNAPSHOT_MAX_OWN 1024
#define SNAPSHOT_REASON 256

/* How written pages are found. The numbers travel in WireDone.flags. */
typedef enum snapshot_way {
    SNAPSHOT_WAY_NONE = 0,
    SNAPSHOT_WAY_SCAN = 1,    /* the PAGEMAP_SCAN ioctl, Linux 6.7 and later */
    SNAPSHOT_WAY_PAGEMAP = 2, /* reading /proc/self/pagemap */
    SNAPSHOT_WAY_FORK = 3,    /* not at all: each request runs in a child process */
} snapshot_way;

/* What became of a restore. */
typedef enum snapshot_return {
    SNAPSHOT_TAKEN,    /* the first return of snapshot_take() */
    SNAPSHOT_RESTORED, /* a later one: everything is as it was */
    SNAPSHOT_FAILED,   /* no snapshot was taken; snapshot_reason() says why */
} snapshot_return;

typedef struct snapshot_numbers {
    snapshot_way way;
    uint64_t restores;
    uint64_t scans;   /* searches for written pages */
    uint64_t layouts; /* restores that had to put mappings back */
    size_t bytes;     /* private writable memory in the snapshot */
    size_t stored;    /* of that, bytes that are not zero */
    size_t written;   /* bytes copied back by the last restore */
    uint64_t last_ns; /* that the last restore took */
} snapshot_numbers;

/* --- snapshot.c --- */

/* Maps the engine's own memory and chooses the way (HOWDAH_SNAPSHOT_PAGES=scan|pagemap|fork forces one). Once per
 * process, before anything else here. False: snapshot_reason() says why. */
bool snapshot_prepare(void);
/* Leaves a part of memory out of the snapshot: it keeps what requests write to it. Before snapshot_take(). */
bool snapshot_spare(const void *start, size_t length);
/* Memory of the snapshot whose content nobody will read: it is neither stored nor put back. Before snapshot_take(). */
void snapshot_loose(const void *start, size_t length);
/* Takes the snapshot; returns again after each restore. Not on a stack that a fiber allocated. With SNAPSHOT_WAY_FORK
 * `forking` is called before each child; it may return in forks of this process too. */
snapshot_return snapshot_take(void (*forking)(void));
/* Brings the process back to the snapshot: snapshot_take() returns once more. Returns only when that is impossible
 * (snapshot_reason() says why); nothing has been changed in memory then and the process should end. */
void snapshot_restore(void);
/* Ends the worker, in good order; does not return. */
void snapshot_exit(void) __attribute__((noreturn));
/* Whether snapshot_take() has succeeded. */
bool snapshot_taken(void);
/* Whether address lies in memory that the snapshot restores. */
bool snapshot_covers(const void *address);
/* Why the last step failed. */
const char *snapshot_reason(void);
const snapshot_numbers *snapshot_stats(void);

/* Memory that requests leave alone and that outlives restores, filled with zeros; never given back. NULL without
 * memory. With SNAPSHOT_WAY_FORK what a request's child writes there is lost. */
void *snapshot_engine_memory(size_t size);
/* The same, but children of requests write to it too. A new worker has it as it was when the template was forked. */
void *snapshot_lasting_memory(size_t size);

/* --- snapshot_share.c, for the layer above --- */

/* Why workers cannot be forked from this process after its snapshot, or NULL. */
const char *snapshot_unshareable(void);
/* In a fork of the process, first of all: locks and files of its own. False: it must end (reason set). */
bool snapshot_forked(void);
/* In a fork that becomes a worker: its memory as it is now is its own snapshot, in which everything that is as in the
 * process it was forked from stays shared. snapshot_take() returns once more; with SNAPSHOT_WAY_FORK this function
 * does. Ends the process if that is impossible. */
void snapshot_adopt(void);

/* --- for the engine, from the layer above (fork.c) --- */

/* fork() of a child that goes on as this worker. */
pid_t snapshot_fork(void);

/* --- snapshot_process.c, for the layer above --- */

/* The script has changed signal handlers: the next restore puts all of them back. */
void snapshot_signals_touched(void);
/* Makes the next restore impossible, so that the process is replaced. `why` is a literal. */
void snapshot_spoil(const char *why);
/* Descriptors that the application opened while it booted, except those open at snapshot_prepare(). */
size_t snapshot_boot_sockets(void);
/* Whether the application has opened it while it booted. Before and after the snapshot. */
bool snapshot_is_boot_descriptor(int fd);
/* A descriptor for what the application had opened under this number, whatever the request has done to it. */
int snapshot_boot_descriptor(int fd);
/* Whether the process can be put back after this request, as far as its descriptors are concerned; else
 * snapshot_reason(). snapshot_restore() asks too; whoever asks before can still end in good order. */
bool snapshot_restorable(void);
/* The request may have locked one of the application's files. */
void snapshot_locks_touched(void);
/* Whether locks are held on files that were opened at boot, and whether snapshot_restorable() has missed one. */
bool snapshot_has_locked_files(void);
bool snapshot_lock_was_lost(void);
/* A boot-time socket on which bytes or the end wait although no request runs: its descriptor, or -1. */
int snapshot_restless_socket(void);

/* ------------------------------------------------------------------------------------------------------------------
 * Inside of the engine. */

/* A private writable mapping. */
typedef struct snapshot_range {
    char *start, *end;
    size_t offset; /* in the memfd and in the copy */
    int protection;
} snapshot_range;

/* Addresses that were mapped, whatever it was. */
typedef struct snapshot_area {
    char *start, *end;
} snapshot_area;

/* Pages to put back. */
typedef struct snapshot_run {
    char *to;
    const char *from; /* in the copy */
    size_t length;
} snapshot_run;

/* A descriptor of the application, open at the snapshot. */
typedef struct snapshot_kept {
    int fd, twin; /* twin: a duplicate that scripts do not know */
    dev_t device;
    ino_t inode;
    mode_t type;
    int status_flags, descriptor_flags;
    off_t position; /* -1: it has none */
    /* See snapshot_kept.c. */
    bool private;
    off_t size;
    struct timespec changed;
    int unread;
    uint64_t state;
} snapshot_kept;

/* A lock of the process on one of the application's files, as /proc/self/fdinfo tells it, without its number. */
typedef struct snapshot_file_lock {
    int fd;
    char text[SNAPSHOT_LOCK_TEXT];
} snapshot_file_lock;

/* A lock on a file that the process holds for reading. */
typedef struct snapshot_lock {
    int fd;
    off_t start, length; /* length 0: to the end */
} snapshot_lock;

/* See snapshot_lines.c. */
typedef struct snapshot_lines snapshot_lines;

/* The kernel's side of the process. */
typedef struct snapshot_process {
    int directory;  /* the current directory */
    int first_free; /* every lower descriptor is taken at the snapshot */
    mode_t umask;
    bool had_children;
    bool signals_touched;
    const char *spoiled;
    struct sigaction actions[NSIG];
    stack_t signal_stack;
    int priority;
    size_t n_kept, n_sockets;
    snapshot_kept kept[SNAPSHOT_MAX_KEPT];
    size_t n_file_locks, n_parked, n_parking;
    int parking[SNAPSHOT_MAX_PARKED]; /* descriptors of the request that stay open, in order */
    bool lock_lost;
    bool locks_touched; /* by the request, perhaps */
    bool unfit;         /* a descriptor cannot be in a snapshot */
    snapshot_file_lock file_locks[SNAPSHOT_MAX_FILE_LOCKS];
    unsigned char open_before[1024]; /* bitmap of descriptors that are none of the application's */
} snapshot_process;

/* All state of the engine. In memory that is left out of the snapshot, so that restoring leaves it alone. */
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
    size_t heap_loose;                       /* which of them is the C library's heap's, if any is */
    size_t n_layout;
    snapshot_area *layout; /* everything mapped at the snapshot */
    int memfd;
    ino_t memfd_inode;
    char *copy; /* the memfd, mapped once more */
    size_t copy_length;

    int pagemap;
    int statm;
    uint64_t searches; /* that have made `hot` */
    size_t n_hot, max_hot;
    snapshot_run *hot;
    bool copies_differences;
    snapshot_lines *lines; /* NULL: written pages are compared or copied, see snapshot_copy.c */
    unsigned char *marks;  /* of each page of the copy, see snapshot_trim.c */
    uint64_t watch_from;   /* the restore at which the next watch begins */
    void *scan_buffer;
    size_t scan_buffer_size;
    long faults;
    long size_pages; /* of the address space, after the last restore */
    long size_now;   /* when the restore began */

    void *program_break;
    char *stack_start, *stack_end, *stack_copy;

    size_t n_shared_before;
    snapshot_area shared_before[SNAPSHOT_MAX_SHARED]; /* shared mappings that are none of the application's */
    size_t n_lasting;
    snapshot_area lasting[SNAPSHOT_MAX_LOOSE];
    size_t n_locks;
    snapshot_lock locks[SNAPSHOT_MAX_LOCKS];
    size_t n_own;
    snapshot_run *own; /* pages that in this process's snapshot are not those of the memfd */

    char *text; /* for /proc files */
    size_t text_size;
    snapshot_process process;

    ucontext_t context; /* where snapshot_take() returns */
    ucontext_t engine;  /* the engine's own stack, signals blocked */
    char *engine_stack;
    size_t engine_stack_size;
} snapshot_state;

extern snapshot_state *snapshot_state_;

void snapshot_set_reason(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A line of /proc/self/maps. */
typedef struct snapshot_mapping {
    char *start, *end;
    int protection;
    unsigned long inode;
    bool shared, stack, special; /* special: [vdso], [vvar], [vsyscall] */
} snapshot_mapping;

/* --- snapshot_maps.c --- */

/* Reads a file below /proc into the engine's buffer. Returns its length, or -1. */
ssize_t snapshot_maps_read(snapshot_state *s, const char *path);
/* Takes the next mapping line of /proc/self/maps (or smaps); other lines are skipped. False at the end. */
bool snapshot_maps_next(const char **text, snapshot_mapping *mapping);
bool snapshot_maps_store(snapshot_state *s);
bool snapshot_maps_replace(snapshot_state *s);
/* After a fork: a view of the copy that is this process's own, and the layout as it is now. */
bool snapshot_maps_adopt(snapshot_state *s);
/* Unmaps what is new and maps again what is gone or has other rights. */
bool snapshot_maps_reconcile(snapshot_state *s);
/* Size of the address space in pages, or -1. */
long snapshot_maps_size(const snapshot_state *s);

/* --- snapshot_pages.c --- */
snapshot_way snapshot_pages_choose(snapshot_state *s);
/* After a fork: files below /proc that are this process's. */
bool snapshot_pages_reopen(snapshot_state *s);
bool snapshot_pages_prepare(snapshot_state *s);
/* The first loose area that overlaps [start, end), or NULL. */
const snapshot_area *snapshot_pages_loose(const snapshot_state *s, const char *start, const char *end);
/* Learns which pages are written. */
bool snapshot_pages_find(snapshot_state *s);
long snapshot_pages_faults(void);

/* --- snapshot_copy.c --- */
void snapshot_copy_prepare(snapshot_state *s);
void snapshot_copy_back(snapshot_state *s);
/* Puts one page back, storing only what differs; a bit for each line in which anything did. With AVX-512 only. */
uint64_t snapshot_copy_differences(char *to, const char *from);

/* --- snapshot_lines.c --- */
/* Sets s->lines, if this processor and the memory allow it. */
void snapshot_lines_prepare(snapshot_state *s);
/* False when pages have to be compared or copied this time. */
bool snapshot_lines_put_back(snapshot_state *s);
/* Forgets what has differed: it may have been long ago. */
void snapshot_lines_forget(snapshot_state *s);

/* --- snapshot_trim.c --- */
bool snapshot_trim_prepare(snapshot_state *s);
/* Before written pages are copied back: notes which of them differ from the snapshot, while that is being watched. */
void snapshot_trim_watch(snapshot_state *s);
/* Whether a watch has lasted long enough. */
bool snapshot_trim_due(const snapshot_state *s);
/* Ends a watch and drops what did not differ; the number of such pages. The list of written pages is out of date then.
 */
size_t snapshot_trim_end(snapshot_state *s);
/* Never drops this page of the copy. */
void snapshot_trim_never(snapshot_state *s, const char *from);

/* --- snapshot_process.c --- */
void snapshot_process_begin(snapshot_state *s);
bool snapshot_process_store(snapshot_state *s);
/* False: this process cannot be restored (reason set). */
bool snapshot_process_check(snapshot_state *s);
/* Puts the application's descriptors back. False when one cannot be (reason set). */
bool snapshot_process_rewind(const snapshot_process *p);
bool snapshot_process_restore(snapshot_state *s);
/* Takes every descriptor below the highest one that is open. */
bool snapshot_process_fill(snapshot_process *p);
/* After a fork: every descriptor below the highest one is taken again, and there are no children. */
bool snapshot_process_adopt(snapshot_state *s);

/* --- snapshot_kept.c --- */
/* False: such a descriptor cannot be put back (reason set). */
bool snapshot_kept_store(snapshot_kept *kept);
/* False: the request has changed what lies behind a descriptor (reason set). */
bool snapshot_kept_check(const snapshot_process *p);

/* --- snapshot_locks.c --- */
bool snapshot_locks_store(snapshot_process *p);
/* False: a lock was lost (reason set). Those that the request has added are given up. */
bool snapshot_locks_check(snapshot_state *s);
/* Closes what requests have opened, but for descriptors with which locks would go. */
void snapshot_locks_close(snapshot_process *p);

/* --- snapshot_share.c --- */
void snapshot_share_begin(snapshot_state *s);
/* Brings back what differs from the memfd, after mappings were mended. */
void snapshot_share_mend(const snapshot_state *s);
/* --- snapshot.c, for snapshot_share.c --- */
/* Runs a step that ends where snapshot_take() returns, on the engine's stack. */
void snapshot_on_engine_stack(void (*step)(void)) __attribute__((noreturn));
/* Says why the process is in pieces, and ends it. */
void snapshot_die(const snapshot_state *s) __attribute__((noreturn));

#endif
