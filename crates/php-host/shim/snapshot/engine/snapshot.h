/* The snapshot engine: takes a picture of this process and brings the process back to it, again and again. It knows
 * nothing of PHP; modes/snapshot.c decides when, snapshot/php/ what happens in between. How it works and what it
 * cannot do is in docs/internals/snapshot.md.
 *
 * snapshot.c      take and restore: order of the steps, fork per request
 * state.c         the engine's state, its memory, its stack, and why a step failed
 * maps.c          the process's mappings: listing, copying into a memfd, putting back the layout
 * pages.c         which pages were written
 * copy.c          putting them back
 * differences.c   one of them, by comparing
 * lines.c         the same without reading the snapshot, for processors that can
 * trim.c          dropping pages that need no copying back any more
 * process.c       kernel state other than memory: descriptors, directory, timers, signals, children
 * descriptors.c   what the kernel keeps behind the application's descriptors
 * locks.c         locks on the application's files
 * share.c         forks of the process that go on with the same snapshot */
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

/* Ways of finding written pages. The numbers travel in WireDone.flags. */
typedef enum snapshot_way {
    SNAPSHOT_WAY_NONE = 0,
    SNAPSHOT_WAY_SCAN = 1,    /* the PAGEMAP_SCAN ioctl, Linux 6.7 and later */
    SNAPSHOT_WAY_PAGEMAP = 2, /* reading /proc/self/pagemap */
    SNAPSHOT_WAY_FORK = 3,    /* not at all: each request runs in a child process */
} snapshot_way;

/* Result of a restore. */
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
/* Takes the snapshot; returns again after each restore. Not on a stack that a fiber allocated. With SNAPSHOT_WAY_FORK
 * `forking` is called before each child; it may return in forks of this process too. */
snapshot_return snapshot_take(void (*forking)(void));
/* Brings the process back to the snapshot: snapshot_take() returns once more. Returns only when that is impossible
 * (snapshot_reason() says why); nothing has been changed in memory then and the process should end. */
void snapshot_restore(void);
/* Ends the worker, in good order; does not return. */
void snapshot_exit(void) __attribute__((noreturn));
/* True if a snapshot is prepared and not taken yet: the application boots. */
bool snapshot_awaited(void);
/* True if snapshot_take() has succeeded. */
bool snapshot_taken(void);
/* True if address lies in memory that the snapshot restores. */
bool snapshot_covers(const void *address);
const snapshot_numbers *snapshot_stats(void);

/* --- state.c --- */

/* Leaves a part of memory out of the snapshot: it keeps what requests write to it. Before snapshot_take(). */
bool snapshot_spare(const void *start, size_t length);
/* Memory of the snapshot whose content is not read again: it is neither stored nor put back. Before snapshot_take(). */
void snapshot_loose(const void *start, size_t length);
/* Memory that requests leave alone and that outlives restores, filled with zeros; never given back. NULL without
 * memory. With SNAPSHOT_WAY_FORK what a request's child writes there is lost. */
void *snapshot_engine_memory(size_t size);
/* The same, but children of requests write to it too. A new worker has it as it was when the template was forked. */
void *snapshot_lasting_memory(size_t size);
/* Why the last step failed. */
const char *snapshot_reason(void);

/* --- share.c --- */

/* Why workers cannot be forked from this process after its snapshot, or NULL. */
const char *snapshot_unshareable(void);
/* In a fork of the process, first of all: separates its locks and files. False: it must end (reason set). */
bool snapshot_forked(void);
/* In a fork that becomes a worker: its memory as it is now is its own snapshot, in which everything that is as in the
 * process it was forked from stays shared. snapshot_take() returns once more; with SNAPSHOT_WAY_FORK this function
 * does. Ends the process if that is impossible. */
void snapshot_adopt(void);

/* --- for the engine, from the layer above --- */

/* fork() of a child that goes on as this worker. */
pid_t snapshot_fork(void);

/* --- process.c --- */

/* Kernel state that few requests change. To put it back costs system calls, so the calls that change it are watched. */
typedef enum snapshot_part {
    SNAPSHOT_SIGNALS = 1,
    SNAPSHOT_ALARM = 2,
    SNAPSHOT_DIRECTORY = 4,
    SNAPSHOT_UMASK = 8,
    SNAPSHOT_CHILDREN = 16,
    SNAPSHOT_NAME = 32,
} snapshot_part;
/* The request may have changed these parts (of snapshot_part): the next restore puts them back. */
void snapshot_touched(unsigned parts);
/* Requests may change these parts unseen: each restore puts them back. */
void snapshot_unseen(unsigned parts);
/* Makes the next restore impossible, so that the process is replaced. `why` is a literal. */
void snapshot_spoil(const char *why);
/* Descriptors that the application opened while it booted, except those open at snapshot_prepare(). */
size_t snapshot_boot_sockets(void);
/* True if the application has opened it while it booted. Before and after the snapshot. */
bool snapshot_is_boot_descriptor(int fd);
/* A descriptor for what the application had opened under this number, whatever the request has done to it. */
int snapshot_boot_descriptor(int fd);
/* True if the process can be put back after this request, as far as its descriptors are concerned; else
 * snapshot_reason(). The caller can still end in good order; nothing of PHP may run between a true answer and
 * snapshot_restore(), which asks only if it was not called. */
bool snapshot_restorable(void);
/* The request may have locked one of the application's files. */
void snapshot_locks_touched(void);
/* True if locks are held on files that were opened at boot; if snapshot_restorable() has missed one. */
bool snapshot_has_locked_files(void);
bool snapshot_lock_was_lost(void);
/* A boot-time socket on which bytes or the end wait although no request runs: its descriptor, or -1. */
int snapshot_restless_socket(void);

#endif
