/* The border between C and Rust: everything the shim calls in Rust (howdah_rs_*) and everything Rust calls in the shim
 * (howdah_c_*). Rust functions return and never call back into PHP, so no Rust frame lies between a PHP bailout
 * (longjmp) and its target. Strings are borrowed for the duration of a call unless a comment says otherwise. */
#ifndef HOWDAH_BRIDGE_H
#define HOWDAH_BRIDGE_H

#include "wire.h" /* generated from crates/transport/src/wire.rs: WireCall, WireVar, StrRef, HOWDAH_VAR_NAMES(X) */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- C calls Rust ------------------------------------------------------------------------------------------------- */

/* The worker can take calls: tells the server, once. */
void howdah_rs_ready(void);

/* Snapshot mode: the application has booted, and workers may be forked from this process; or they may not, and
 * `why_not` says why. Returns false in this worker, and true in each worker that was forked: it has a lane of its own
 * then. */
bool howdah_rs_share_boot(const char *why_not, uint64_t boot_began_us);

/* Snapshot mode: whether this worker boots for others and has not said yet how that went. */
bool howdah_rs_boots_for_others(void);

/* An answer to a warm-up request. */
typedef struct howdah_warmup_answer {
    uint32_t status; /* 0: there was none */
    uint32_t head_length, session_length, body_length;
    char head[8192];     /* lines "Name: value\n" */
    char session[16384]; /* strings of the session, "name=value\n" */
    char body[131072];   /* what lies behind is left out */
} howdah_warmup_answer;

/* Two visitors each where no warm-up request has run, and on the finished snapshot. */
enum { HOWDAH_ANSWER_ALONE = 0, HOWDAH_ANSWER_RESTORED = 2, HOWDAH_ANSWERS = 4 };

/* A path of the warm-up. */
typedef struct howdah_warmup_path {
    uint32_t worst_status;
    howdah_warmup_answer answers[HOWDAH_ANSWERS];
} howdah_warmup_path;

/* Looks at what the warm-up requests were answered and tells the server. `compare`: look for what two visitors have in
 * common as well; `removable`: the pool can do without warm-up requests in its snapshot. False when that is what will
 * happen. Called in a fork of the worker, which ends then. */
bool howdah_rs_judge_warmup(const howdah_warmup_path *paths, size_t n, bool compare, bool removable);

/* The warm-up cannot be done: the server will replace this worker by one without, which `why` is the reason for. */
void howdah_rs_warmup_failed(const char *why);

/* Waits for the next call and marks it running. Returns NULL when the worker shall end. The frame stays valid, in
 * shared memory, until howdah_rs_done(). Layout: WireCall, n_vars x WireVar, strings_len bytes, inline body. */
const WireCall *howdah_rs_next_call(void);

/* Around each fork() of a worker. `with_lane`: the child goes on as this worker. Any other child has no lane, but
 * memory of its own in that place with the call that runs, and none of the descriptors that belong to the lane. */
void howdah_rs_fork_begins(bool with_lane);
void howdah_rs_fork_ends(bool with_lane);
void howdah_rs_became_script_child(void);

/* The current call's script has run past its time limit. Called from a signal handler. */
void howdah_rs_timed_out(void);

/* Reads up to `size` bytes of the current call's body. Returns the number of bytes, 0 at the end. Never blocks for
 * long: the body is complete. */
size_t howdah_rs_read_body(char *buffer, size_t size);

/* The answer's head: begin with the status, add lines "Name: value" (no line end), finish. `interim` heads are 1xx
 * answers and may be sent several times before the real one. */
void howdah_rs_head_begin(unsigned status, bool interim);
void howdah_rs_head_line(const char *line, size_t length);
void howdah_rs_head_end(void);

/* Adds to the answer's body. May wait for room. Returns false when the client has gone: the caller then tells PHP
 * (php_handle_aborted_connection). */
bool howdah_rs_write(const char *data, size_t length);

/* Sends everything written so far to the client now. Returns false when the client has gone. */
bool howdah_rs_flush(void);

/* The answer is complete for the client; the worker goes on with the call. Idempotent. `done_follows`: only PHP's own
 * cleaning up is left before howdah_rs_done(); after a short call the server is then woken once for both. */
void howdah_rs_end_response(bool done_follows);

/* What howdah_rs_done() reports beside, in snapshot mode. */
typedef struct snapshot_report {
    uint32_t way;            /* how written pages are found: snapshot_way in snapshot.h */
    uint32_t searches;       /* how often that was needed, since the snapshot */
    uint32_t restored_pages; /* by the last restore */
    uint32_t restore_ns;     /* and the time it took */
    uint32_t resets;         /* sessions of boot-time connections that this call's end has reset */
    bool unfit;              /* the worker ends, as it cannot be put back after this call */
} snapshot_report;
void howdah_rs_snapshot_numbers(snapshot_report numbers);

/* The call is over, resources of the script are released; the worker is free. Ends the response if still open. The
 * frame from howdah_rs_next_call() is invalid afterwards. */
void howdah_rs_done(uint64_t peak_memory, bool retire);

/* Gives the current call back to the server, for a worker that has booted later; the worker must end at once. False
 * when a part of its answer has been sent. Not in async mode. */
bool howdah_rs_give_back(uint64_t boot_began_us);

/* Writes a line into the server's log with the current call's id; level as in syslog(3), 0 emergency to 7 debug. Works
 * before the first call too (boot messages). */
void howdah_rs_log(int level, const char *message, size_t length);

/* --- The part of the async library that is written in PHP (src/library.rs) ---------------------------------------- */

/* The file of the library with this index, in the order in which they are to be compiled: the path by which PHP knows it,
 * its text, and the time of its last change, for OPcache. False: there are no more. */
bool howdah_rs_library(size_t index, const char **path, const char **text, size_t *text_len, uint64_t *changed);

/* --- C calls Rust, async mode: several calls at once ------------------------------------------------------------- */

/* In async mode these take the place of howdah_rs_next_call(). The functions above are then about the selected call,
 * and what they write reaches the server with howdah_rs_publish(), howdah_rs_flush(), howdah_rs_prepare_wait(), or when
 * much of it is waiting. Nothing waits but writing, for room that the server makes at once. */

/* The descriptor to wait on, edge-triggered: it is written to after the server has sent something while the worker had
 * announced that it waits, and nobody reads it. -1 in other modes. Bridge's own: do not read or close it. */
int howdah_rs_wake_fd(void);

/* Publishes, then announces that the worker will wait on the descriptor. False: there is something already, take it
 * first. */
bool howdah_rs_prepare_wait(void);

/* After the wait, for whatever reason it ended: takes the announcement back. */
void howdah_rs_woken(void);

typedef enum howdah_event { HOWDAH_EVENT_NONE, HOWDAH_EVENT_CALL, HOWDAH_EVENT_CANCEL, HOWDAH_EVENT_STOP } howdah_event;

/* The next thing the server has sent; never waits. CALL: `*call` and `*number` are set, the memory (laid out as for
 * howdah_rs_next_call()) is the call's until its howdah_rs_done(); it is not selected yet. CANCEL: `*number`, a call
 * that is not done, and `*reason`, one of CANCEL_CLIENT_GONE and CANCEL_DEADLINE; howdah_rs_write() and
 * howdah_rs_flush() return false for that call from now on. A call that does not end within a few seconds after its
 * deadline costs the worker its life. STOP, once: no call follows, end with the last one; CANCEL may still come. */
howdah_event howdah_rs_take_event(const WireCall **call, uint64_t *number, unsigned *reason);

/* To which open call belong body, head, output, log lines and end from now on; 0 (or one that is not open): to none.
 * Cheap. Not between howdah_rs_head_begin() and howdah_rs_head_end(). howdah_rs_done() leaves none selected. */
void howdah_rs_select_call(uint64_t number);

/* Shows the server everything written so far and wakes it if it sleeps. */
void howdah_rs_publish(void);

/* A connection pool of this worker, one of POOL_SLOTS: its name, and what `pool_number` lists. Only written to shared
 * memory, where the server looks when somebody asks. A script's child must not call them. */
void howdah_rs_pool_name(unsigned slot, const char *name, size_t length);
/* What a number is called in PHP and in the metrics; zero-terminated. */
const char *howdah_rs_pool_number_name(unsigned number);
void howdah_rs_pool_numbers(unsigned slot, const uint64_t numbers[POOL_NUMBERS]);

/* --- Rust calls C ------------------------------------------------------------------------------------------------- */

typedef struct howdah_boot {
    const char *mode;              /* "classic", "worker", "snapshot", "async" */
    const char *script;            /* worker script, or "" */
    const char *boot_script;       /* boot file of snapshot mode, or "" */
    const char *ini_path;          /* php.ini file or directory to use instead of PHP's built-in search, or "" */
    const char *ini_entries;       /* "key=value\n"... set before PHP's start, not overridable by php.ini (like -d) */
    const char *admin_ini_entries; /* the same, and scripts and .user.ini files cannot change these */
    const char *software;          /* SERVER_SOFTWARE for messages, e.g. "Howdah/0.1.0" */
    unsigned long max_requests;    /* calls after which a worker retires; 0 = never */
    unsigned long max_memory;      /* bytes of memory with which a worker retires after a call; 0 = never */
    unsigned long concurrency;     /* calls that a worker runs at once; 1 in all modes but async */
    const WireCall *const *warmup; /* calls that a new worker runs before it takes others, laid out as in a lane */
    size_t n_warmup;
    bool warmup_check; /* compare the answers of two visitors to them */
    bool sandbox;      /* howdah_c_sandbox_code() will follow */
} howdah_boot;

/* Starts PHP (modules, ini, OPcache, preload). Called once, in the zygote, before any fork. 0 on success. The strings
 * of `boot` live as long as the process. */
int howdah_c_startup(const howdah_boot *boot);

/* After a fork, in the child, before anything else of PHP: whatever a forked PHP must renew (random state, pids,
 * timers, signal handlers, crash and stack-dump handlers). */
void howdah_c_after_fork(void);

/* Async mode, in a process that the zygote has forked for this: has OPcache compile the library, which workers then find
 * in shared memory. The process has to end afterwards; a request of PHP stays open in it. */
void howdah_c_compile_library(void);

/* Snapshot mode: from now on workers that are forked run warm-up requests only where what they leave is undone. */
void howdah_c_refuse_warmup(void);

/* Snapshot mode: forks a child of this process's parent, with locks and files of its own. Returns like fork(). */
int howdah_c_fork_sibling(void);

/* Runs calls until howdah_rs_next_call() returns NULL or the worker must retire. Returns the process's exit status; the
 * caller ends the process with _exit() after howdah_c_shutdown(). */
int howdah_c_worker_run(void);

/* Ends PHP in this process (module shutdown), in a worker or in the zygote. */
void howdah_c_shutdown(void);

/* Writes the current PHP stack of this process as text ("#0 /path/file.php:12 function()\n"...) into `buffer`, returns
 * the length. Async-signal-safe: reads memory only, allocates nothing. Called from a signal handler of a worker that is
 * about to be killed. */
size_t howdah_c_dump_stack(char *buffer, size_t size);

/* The value of an ini setting at this moment, or NULL. Valid until PHP changes it. */
const char *howdah_c_setting(const char *name);

/* A directory that workers may write to: files below it are never PHP, or (`code`) they may be included. */
typedef struct howdah_code_rule {
    const char *path; /* a real path */
    size_t length;
    bool code;
} howdah_code_rule;

/* The pool has a sandbox. Once, in the zygote, after howdah_c_startup(). The rules live as long as the process.
 * `no_programs`: the kernel refuses to run any, and attempts are logged. */
void howdah_c_sandbox_code(const howdah_code_rule *rules, size_t n, bool no_programs);

/* Writes where PHP is and for which request ("in /path/file.php:12 (/uri)"), returns the length. Async-signal-safe. */
size_t howdah_c_place(char *buffer, size_t size);

/* Whether one more refusal may be logged in this second. Async-signal-safe. */
bool howdah_c_may_log_refusal(void);

/* PHP's version as a string literal, e.g. "8.2.35". */
const char *howdah_c_php_version(void);

#endif
