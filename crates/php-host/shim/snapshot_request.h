/* A request of snapshot mode: what PHP does at its end, and what must be fresh at its start.
 *
 * snapshot_heap.c     Zend's memory: chunks that requests use over and over and that need no restoring
 * snapshot_random.c   random numbers: no two requests see the same
 * snapshot_end.c      the end of a request: shutdown functions, destructors, resources
 * snapshot_settle.c   connections, files and the process itself, as far as others know of them
 * snapshot_warmup.c   requests before the snapshot, and what they leave
 * mode_snapshot.c     boot, warm-up, the moment of the snapshot, the flow of calls */
#ifndef HOWDAH_SNAPSHOT_REQUEST_H
#define HOWDAH_SNAPSHOT_REQUEST_H

#include "shim.h"
#include "snapshot.h"

/* --- snapshot_heap.c --- */

/* Gives PHP a heap with storage of ours. Before PHP's request is opened. */
void shim_snapshot_heap_install(void);
/* Leaves the spare chunks out of the snapshot. */
void shim_snapshot_heap_spare(void);
/* Frees the garbage that the boot has left, without writing to what requests will use. Before the snapshot. */
void shim_snapshot_heap_collect(void);

/* --- snapshot_random.c --- */

/* Watches how engines of ext/random are seeded, after PHP's modules have started. */
void shim_snapshot_random_watch(void);
/* At the snapshot: generators are left in a state in which their next use takes fresh randomness from the kernel. */
void shim_snapshot_random_forget(void);
/* In a worker forked from another one: what that one has drawn is not this one's. */
void shim_snapshot_random_forked(void);
/* At the start of a request: for what cannot do that by itself. */
void shim_snapshot_random_renew(void);
/* In a fork of the booting process that answers one request and ends. */
void shim_snapshot_random_apart(void);

/* --- snapshot_end.c --- */

/* At the snapshot: what exists now is the application's. */
void shim_snapshot_end_remember(void);
/* Everything that PHP does at the end of a request before memory goes. */
void shim_snapshot_end_request(bool after_bailout);
/* The last part of that: lets go of what the request holds outside of its memory. */
void shim_snapshot_end_outside(void);
bool shim_snapshot_is_boot_object(const zend_object *object);
/* A stream that cannot be restored, as text, or NULL. */
const char *shim_snapshot_refused_stream(void);

/* --- snapshot_tls.c --- */

/* From now on encrypted connections are known. */
void shim_snapshot_tls_watch(void);
/* An extension's encrypted connection that cannot be restored, as text, or NULL. */
const char *shim_snapshot_refused_connection(void);

/* --- snapshot_settle.c --- */

/* Before the boot. */
void shim_snapshot_settle_watch(void);
/* At the snapshot: why it cannot be taken, or NULL. */
const char *shim_snapshot_settle_boot(void);
/* After all of PHP's part of a request: makes good for what it did outside of its memory. False when the worker must be
 * replaced, which is in the log then. `cut_off`: the script was ended in the middle. */
bool shim_snapshot_settle(bool cut_off);

/* --- what it calls: snapshot_tap.c, snapshot_sqlite.c, snapshot_watch.c. Each returns NULL, or what stands in the way
 * --- */
void shim_snapshot_tap_install(void);
const char *shim_snapshot_tap_boot(void);
const char *shim_snapshot_tap_settle(bool cut_off);
bool shim_snapshot_has_connections(void);
void shim_snapshot_sqlite_watch(void);
const char *shim_snapshot_sqlite_boot(void);
const char *shim_snapshot_sqlite_settle(void);
void shim_snapshot_watch(void);
void shim_snapshot_watch_boot(void);
const char *shim_snapshot_watch_settle(void);

/* --- snapshot_notes.c --- */

/* Before the zygote forks: memory that all workers of the pool share. */
void shim_snapshot_notes_startup(void);
/* Sessions that were reset after this request. */
unsigned shim_snapshot_resets(void);
/* Warm-up calls on the finished snapshot are left out from now on, in this pool. */
void shim_snapshot_refuse_warmup(const char *why);
bool shim_snapshot_warmup_refused(void);
/* --- snapshot_warmup.c --- */

/* First of all, before the engine looks at the process. */
void shim_warmup_prepare(void);
/* For a boot file: the warm-up requests as whole requests of classic mode, before it runs. */
void shim_warmup_process(void);
/* For a worker script that has booted: what its warm-up requests are answered where none has run before. */
void shim_warmup_ask_alone(zend_fcall_info *function, zend_fcall_info_cache *cache);

typedef enum shim_warmup_step {
    SHIM_WARMUP_TURN, /* a request was handled; the script goes on with its loop's body */
    SHIM_WARMUP_DONE, /* there are no more: time for the snapshot */
} shim_warmup_step;
/* The script asks for a call before the snapshot. */
shim_warmup_step shim_warmup_turn(zend_fcall_info *function, zend_fcall_info_cache *cache);
/* The script is over without a snapshot. Does not return if that was the doing of a warm-up request. */
void shim_warmup_script_ended(void);
/* Makes a warm-up call on the finished snapshot the current one; they are counted from 0. */
void shim_warmup_make_current(size_t number);
/* Looks at what the requests on the snapshot were answered. Does not return if the warm-up has left something that all
 * visitors would share: the server replaces the process by one that boots without. */
void shim_warmup_judge(void);

/* Whether the current call is one of the warm-up. */
bool shim_warmup_running(void);
/* What a warm-up request is answered: parts of its body, its head, the strings of its session, and its end. Without
 * effect for other requests. */
void shim_warmup_output(const char *data, size_t length);
void shim_warmup_head(unsigned status, const sapi_headers_struct *headers);
void shim_warmup_session(void);
void shim_warmup_answered(void);

/* --- mode_snapshot.c --- */

/* frankenphp_handle_request() in snapshot mode. False when the worker shall end. */
bool shim_snapshot_turn(zend_fcall_info *function, zend_fcall_info_cache *cache);

#endif
