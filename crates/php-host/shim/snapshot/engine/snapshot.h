/* The snapshot engine: takes a snapshot of this process and restores it repeatedly. It is independent of PHP:
 * modes/snapshot.c decides when, and snapshot/php/ prepares PHP. docs/internals/snapshot.md describes how it works and
 * its limits.
 *
 * snapshot.c      take and restore: order of the steps, fork per request
 * state.c         the engine's state, its memory, its stack, and the reason of a failed step
 * maps.c          the process's mappings: listing, copying into a memfd, restoring the layout
 * pages.c         finding written pages
 * copy.c          copying them back
 * differences.c   restoring one of them by comparing
 * lines.c         the same without reading the snapshot, on processors that support it
 * trim.c          dropping pages that no longer need to be copied back
 * process.c       kernel state other than memory: descriptors, directory, timers, signals, children
 * descriptors.c   kernel state of the application's descriptors
 * locks.c         locks on the application's files
 * share.c         forks of the process that continue with the same snapshot */
#ifndef HOWDAH_SNAPSHOT_ENGINE_SNAPSHOT_H
#define HOWDAH_SNAPSHOT_ENGINE_SNAPSHOT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SNAPSHOT_PAGE 4096ul

/* Methods of finding written pages. The numbers are sent in WireDone.flags. */
typedef enum snapshot_way {
    SNAPSHOT_WAY_NONE = 0,
    SNAPSHOT_WAY_SCAN = 1,    /* the PAGEMAP_SCAN ioctl, Linux 6.7 and later */
    SNAPSHOT_WAY_PAGEMAP = 2, /* reading /proc/self/pagemap */
    SNAPSHOT_WAY_FORK = 3,    /* not possible: each request runs in a child process */
} snapshot_way;

/* Result of snapshot_take(). */
typedef enum snapshot_return {
    SNAPSHOT_TAKEN,    /* the first return of snapshot_take() */
    SNAPSHOT_RESTORED, /* a later one: the process's state has been restored */
    SNAPSHOT_FAILED,   /* no snapshot was taken; see snapshot_reason() */
} snapshot_return;

typedef struct snapshot_numbers {
    snapshot_way way;
    uint64_t restores;
    uint64_t scans;   /* searches for written pages */
    uint64_t layouts; /* restores that had to repair mappings */
    size_t bytes;     /* private writable memory in the snapshot */
    size_t stored;    /* of that, bytes that are not zero */
    size_t written;   /* bytes in the pages put back by the last restore */
    uint64_t last_ns; /* duration of the last restore in nanoseconds */
} snapshot_numbers;

/* A private writable mapping. */
typedef struct snapshot_range {
    char *start, *end;
    size_t offset; /* in the memfd and in the copy */
    int protection;
} snapshot_range;

/* --- snapshot.c --- */

/* Maps the engine's own memory and chooses the method (HOWDAH_SNAPSHOT_PAGES=scan|pagemap|fork forces one). Called once
 * per process, before any other function here. False on failure, see snapshot_reason(). */
bool snapshot_prepare(void);
/* Takes the snapshot; returns again after each restore. Must not be called on a stack that a fiber allocated. With
 * SNAPSHOT_WAY_FORK, `forking` is called before each child; it may return in forks of this process, too. */
snapshot_return snapshot_take(void (*forking)(void));
/* Restores the snapshot: snapshot_take() returns once more. Returns only when that is impossible (see
 * snapshot_reason()); then memory is unchanged and the process should end. */
void snapshot_restore(void);
/* Ends the worker normally; does not return. */
void snapshot_exit(void) __attribute__((noreturn));
/* True if a snapshot is prepared and not taken yet: the application boots. */
bool snapshot_awaited(void);
/* True if snapshot_take() has succeeded. */
bool snapshot_taken(void);
/* True if the address is in memory that the snapshot restores. */
bool snapshot_covers(const void *address);
const snapshot_numbers *snapshot_stats(void);

/* --- state.c --- */

/* Leaves memory out of the snapshot: it keeps what requests write to it. Call it before snapshot_take(). */
bool snapshot_spare(const void *start, size_t length);
/* Excludes memory whose content is not read again: it is neither stored nor restored. Call it before
 * snapshot_take(). */
void snapshot_loose(const void *start, size_t length);
/* Returns zeroed memory that requests do not change and that outlives restores; it is never freed. NULL without memory.
 * With SNAPSHOT_WAY_FORK, writes of a request's child are lost. */
void *snapshot_engine_memory(size_t size);
/* Returns such memory, but shared with the children of requests. With SNAPSHOT_WAY_FORK it is zeroed in each new
 * worker: what the template shares with its first worker has changed since the fork. */
void *snapshot_lasting_memory(size_t size);
/* Returns the reason why the last step failed. */
const char *snapshot_reason(void);

/* --- maps.c --- */

/* Unmaps pages of code and constants, most of which only the boot has needed; others are read again from the files. */
void snapshot_release_files(void);

/* --- share.c --- */

/* Returns the descriptor of the sealed file with the memory of these ranges; -1 with SNAPSHOT_WAY_FORK. */
int snapshot_file(const snapshot_range **ranges, size_t *n);

/* Returns the reason why workers cannot be forked from this process after its snapshot, or NULL. */
const char *snapshot_unshareable(void);
/* Finds `length` bytes in the snapshot, at multiples of 4: the addresses of the first `most` places. Returns their
 * number. */
size_t snapshot_find(const void *what, size_t length, void **places, size_t most);
/* Changes bytes both in memory and in what this process restores from. Called while memory is that of the snapshot.
 * False: there is no room to note the page. */
bool snapshot_change(void *place, const void *bytes, size_t length);
/* Called first in a fork of the process: separates its locks and files. False: it must end (reason set). */
bool snapshot_forked(void);
/* Called in a fork that becomes a worker: its current memory becomes its own snapshot, in which everything that equals
 * the original process stays shared. snapshot_take() returns once more; with SNAPSHOT_WAY_FORK, this function returns.
 * Ends the process if that is impossible. */
void snapshot_adopt(void);

/* --- provided to the engine by the layer above --- */

/* Forks a child that continues as this worker. */
pid_t snapshot_fork(void);

/* --- process.c --- */

/* Kernel state that few requests change. Restoring it costs system calls, so the calls that change it are watched. */
typedef enum snapshot_part {
    SNAPSHOT_SIGNALS = 1,
    SNAPSHOT_ALARM = 2,
    SNAPSHOT_DIRECTORY = 4,
    SNAPSHOT_UMASK = 8,
    SNAPSHOT_CHILDREN = 16,
    SNAPSHOT_NAME = 32,
} snapshot_part;
/* Reports that the request may have changed these parts (of snapshot_part): the next restore resets them. */
void snapshot_touched(unsigned parts);
/* Reports that requests may change these parts undetected: each restore resets them. */
void snapshot_unseen(unsigned parts);
/* Makes the next restore impossible, so that the process is replaced. `why` is kept as a pointer: a literal or static
 * text. */
void snapshot_spoil(const char *why);
/* Returns the number of sockets that the application opened while it booted, except those open at
 * snapshot_prepare(). */
size_t snapshot_boot_sockets(void);
/* True if the application opened it while it booted. For use before and after the snapshot. */
bool snapshot_is_boot_descriptor(int fd);
/* Returns a descriptor for the file that the application opened under this number, whatever the request has done to the
 * number. */
int snapshot_boot_descriptor(int fd);
/* Called at boot or later: this descriptor does not prevent forks of the process, because each of them replaces it. */
void snapshot_own_in_forks(int fd);
/* Makes `by` the process's descriptor of the boot under this number, for this and all later requests. False on failure,
 * see errno. */
bool snapshot_replace_boot_descriptor(int fd, int by);
/* True if the process can be restored after this request; otherwise see snapshot_reason(). On false, the
 * caller can still end the worker normally. No PHP code may run between a true result and snapshot_restore(), which
 * makes this check itself only if it was not called. */
bool snapshot_restorable(void);
/* Reports that the request may have locked one of the application's files. */
void snapshot_locks_touched(void);
/* True if locks are held on files that were opened at boot; if snapshot_restorable() has found one missing. */
bool snapshot_has_locked_files(void);
bool snapshot_lock_was_lost(void);
/* Returns the descriptor of a boot-time socket with unread data or a closed peer while no request runs, or -1. */
int snapshot_restless_socket(void);

#endif
