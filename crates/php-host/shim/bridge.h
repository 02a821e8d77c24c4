/* The border between C and Rust: everything the shim calls in Rust (howdah_rs_*) and everything Rust calls in the shim
 * (howdah_c_*). Rust functions return and never call back into PHP, so no Rust frame lies between a PHP bailout
 * (longjmp) and its target. Strings are borrowed for the duration of a call unless a comment says otherwise.
 *
 * In async mode howdah_rs_take_event() takes the place of howdah_rs_next_request(). The other functions are then about
 * the selected request, and what they write reaches the server with howdah_rs_publish(), howdah_rs_flush(),
 * howdah_rs_prepare_wait(), or when much of it is waiting. Nothing waits but writing, for room that the server makes at
 * once.
 *
 * Written by `make generate` from the functions and types in crates/php-host/src and from
 * crates/transport/src/worker_spec.rs, and compared in a test: do not edit. */
/* clang-format off */

#ifndef HOWDAH_BRIDGE_H
#define HOWDAH_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire.h"

// Of the responses to a path, the first of the two visitors where no warm-up request has run.
#define HOWDAH_RESPONSE_ALONE 0

// And the first of the two on the finished snapshot.
#define HOWDAH_RESPONSE_RESTORED 2

// Number of them.
#define HOWDAH_RESPONSES 4

// The effect of an order.
enum howdah_live_kind {
    // Sends `Data` to a WebSocket connection, as text unless there is a field `Binary`.
    HOWDAH_LIVE_KIND_SEND = 1,
    // Closes a WebSocket connection: `Code` (decimal), `Data` (the reason).
    HOWDAH_LIVE_KIND_CLOSE = 2,
    // Adds a WebSocket connection to the subscribers of each `Topic`. With `After`, messages published after that id
    // are sent first.
    HOWDAH_LIVE_KIND_SUBSCRIBE = 3,
    // Removes a WebSocket connection from the subscribers of each `Topic`.
    HOWDAH_LIVE_KIND_UNSUBSCRIBE = 4,
    // Replaces the state that a WebSocket connection's events carry with `Data`.
    HOWDAH_LIVE_KIND_STATE = 5,
    // Publishes `Data` to each `Topic`, as text unless there is a field `Binary`. With an `Id` it is kept in the history.
    HOWDAH_LIVE_KIND_PUBLISH = 6,
    // Publishes a Mercure update: each `Topic`, `Data`, `Id`, `Type`, `Retry` (decimal), `Private`.
    HOWDAH_LIVE_KIND_UPDATE = 7,
};
typedef uint16_t howdah_live_kind;

// The name of a field.
enum howdah_live_field {
    // The id of a WebSocket connection.
    HOWDAH_LIVE_FIELD_CONNECTION = 1,
    // A channel or topic; may occur several times.
    HOWDAH_LIVE_FIELD_TOPIC = 2,
    // The message, the reason or the state.
    HOWDAH_LIVE_FIELD_DATA = 3,
    // Present if the message is binary; empty.
    HOWDAH_LIVE_FIELD_BINARY = 4,
    // The close code.
    HOWDAH_LIVE_FIELD_CODE = 5,
    // The id of an update.
    HOWDAH_LIVE_FIELD_ID = 6,
    // The type of an update.
    HOWDAH_LIVE_FIELD_TYPE = 7,
    // The reconnection time of an update, in milliseconds.
    HOWDAH_LIVE_FIELD_RETRY = 8,
    // Present if the update is private; empty.
    HOWDAH_LIVE_FIELD_PRIVATE = 9,
    // The id of the last message that a client has received.
    HOWDAH_LIVE_FIELD_AFTER = 10,
};
typedef uint16_t howdah_live_field;

// An event from the server.
typedef enum {
    HOWDAH_EVENT_NONE,
    HOWDAH_EVENT_REQUEST,
    HOWDAH_EVENT_CANCEL,
    HOWDAH_EVENT_STOP,
} howdah_event;

// PHP state that is kept between two requests of a worker.
typedef enum {
    // No state: a full PHP request each time.
    HOWDAH_MODE_CLASSIC,
    // All state: the script loops over requests.
    HOWDAH_MODE_WORKER,
    // The state after boot, restored after each request.
    HOWDAH_MODE_SNAPSHOT,
    // All state; one process runs several requests at once.
    HOWDAH_MODE_ASYNC,
} howdah_mode;

// Additional fields of `howdah_rs_done()`, in snapshot mode.
typedef struct {
    // Method to find written pages: snapshot_way in snapshot/engine/snapshot.h.
    uint32_t way;
    // Number of times that this was needed, since the snapshot.
    uint32_t searches;
    // By the last restore,
    uint32_t restored_pages;
    // and the time it took.
    uint32_t restore_ns;
    // Sessions of boot-time connections that this request's end has reset.
    uint32_t resets;
    // The worker ends, as it cannot be put back after this request.
    bool unfit;
} snapshot_report;

// An error that no handler of the application took.
typedef struct {
    // As PHP calls it: "Fatal error".
    const char *kind;
    size_t kind_len;
    const char *message;
    size_t message_len;
    const char *file;
    size_t file_len;
    unsigned int line;
    // As `howdah_c_dump_stack()` writes it.
    const char *stack;
    size_t stack_len;
    // Amount of output in PHP's buffers then, in bytes.
    uint64_t held_output;
} howdah_error;

// A response to a warm-up request.
typedef struct {
    // 0: there was none.
    uint32_t status;
    uint32_t head_length;
    uint32_t session_length;
    uint32_t body_length;
    // Lines "Name: value\n".
    char head[8192];
    // Strings of the session, "name=value\n".
    char session[16384];
    // The rest is left out.
    char body[131072];
} howdah_warmup_response;

// A path of the warm-up.
typedef struct {
    uint32_t worst_status;
    howdah_warmup_response responses[HOWDAH_RESPONSES];
} howdah_warmup_path;

// An owned string without NUL bytes, NUL-terminated. C sees a `const char *` that is never NULL.
typedef const char *howdah_text;

// Settings of request execution. They stay in the zygote for its lifetime; C reads them there (`howdah_worker_spec`).
typedef struct {
    // State that is kept between two requests.
    howdah_mode mode;
    // The worker script, or empty.
    howdah_text script;
    // Name of the recipe (PHP code of the server) that boots the application whose front controller is `script`; or
    // empty.
    howdah_text recipe;
    // The host for every request, if the recipe's boot may need it; or empty.
    howdah_text boot_host;
    // The boot file of snapshot mode, or empty.
    howdah_text boot_script;
    // A php.ini file or directory that replaces PHP's own search, or empty.
    howdah_text ini_path;
    // Settings that override php.ini, in its syntax.
    howdah_text ini_text;
    // Names of the settings that scripts and `.user.ini` files cannot change, one per line.
    howdah_text admin_ini_names;
    // `SERVER_SOFTWARE`.
    howdah_text software;
    // Number of requests after which a worker retires; 0 = never.
    uint64_t max_requests;
    // Memory in bytes at which a worker retires after a request; 0 = a part of `memory_limit` in worker mode, else
    // never.
    uint64_t max_memory;
    // Maximum number of concurrent requests in a worker; 1 in all modes but async.
    uint32_t concurrency;
    // Compare the responses that two visitors get to the warm-up requests.
    bool warmup_check;
    // Show script errors as pages with source code: `howdah dev` only.
    bool error_pages;
} howdah_worker_spec;

// Input of `howdah_c_startup()`. C keeps the pointer: it lives as long as the process, with everything that it points
// to.
typedef struct {
    // Settings of workers.
    const howdah_worker_spec *worker;
    // Requests that a new worker runs before it takes others, laid out as in a lane.
    const WireRequest *const *warmup;
    size_t n_warmup;
    // `howdah_c_sandbox_code()` will follow.
    bool sandbox;
} howdah_boot;

// A line of execution in a worker, by addresses in its memory.
typedef struct {
    // The coroutine's number, and that of the request that it belongs to; both 0 outside of async mode.
    uint64_t coroutine;
    uint64_t request;
    // Its innermost frame.
    uint64_t frame;
    // The text that says what it waits for; 0: it runs.
    uint64_t waits_for;
} howdah_line;

// A frame of a worker's stack, by addresses in its memory.
typedef struct {
    uint64_t frame;
    uint64_t function;
    // Tells functions apart that have had the same address.
    uint64_t mark;
    // 0 in a function of PHP itself.
    uint32_t line;
} howdah_frame;

// Name of a function, and its source file.
typedef struct {
    uint32_t length;
    uint32_t file_length;
    char text[256];
    char file[256];
} howdah_function_name;

// A directory that workers may write to: files below it are never PHP, or (`code`) they may be included.
typedef struct {
    // A real path.
    const char *path;
    size_t length;
    bool code;
} howdah_code_rule;

// The worker can take requests: tells the server, once.
void howdah_rs_ready(void);

// Writes a line into the server's log with the current request's id; level as in syslog(3), 0 emergency to 7 debug. Works
// before the first request too (boot messages).
void howdah_rs_log(int level,
                   const char *message,
                   size_t length);

// Waits for the next request and marks it running. Returns NULL when the worker shall end. The frame stays valid, in
// shared memory, until howdah_rs_done(). Layout: WireRequest, n_vars x WireVar, strings_len bytes, inline body.
const WireRequest *howdah_rs_next_request(void);

// Reads up to `size` bytes of the current request's body. Returns the number of bytes, 0 at the end. Never blocks for
// long: the body is complete.
size_t howdah_rs_read_body(char *buffer, size_t size);

// Begins the head of a response with its status. `interim` heads are 1xx responses and may be sent several times
// before the real one.
void howdah_rs_head_begin(unsigned int status, bool interim);

// The application has found the route that responds to the request; its head will tell the server.
void howdah_rs_route(const char *name, size_t length);

// Adds a line "Name: value" to the head, without a line end.
void howdah_rs_head_line(const char *line, size_t length);

// Finishes the head.
void howdah_rs_head_end(void);

// Adds to the response's body. May wait for room. Returns false when the client has gone: the caller then tells PHP
// (php_handle_aborted_connection).
bool howdah_rs_write(const char *data, size_t length);

// Sends everything written so far to the client now. Returns false when the client has gone.
bool howdah_rs_flush(void);

// The response is complete for the client; the worker goes on with the request. Idempotent. `done_follows`: only PHP's own
// cleaning up is left before howdah_rs_done(); after a short request the server is then woken once for both.
void howdah_rs_end_response(bool done_follows);

// The request is over, resources of the script are released; the worker is free. Ends the response if still open. The
// frame from howdah_rs_next_request() is invalid afterwards.
void howdah_rs_done(uint64_t peak_memory, bool retire);

// Gives the current request back to the server, for a worker that has booted later; the worker must end at once. False
// when a part of its response has been sent. Not in async mode.
bool howdah_rs_give_back(uint64_t boot_began_us);

// The state of the worker's pool as JSON, in a descriptor that the caller closes; -1: there is none to be had. For the
// current request of a worker that runs one at a time.
int howdah_rs_pool_status(void);

// Sets the additional fields of `howdah_rs_done()`, in snapshot mode.
void howdah_rs_snapshot_numbers(snapshot_report numbers);

// Begins an order for connections and channels.
void howdah_rs_live_begin(howdah_live_kind kind);

// Adds a field to the order. Returns false if the order would be too large; it must not be sent then.
bool howdah_rs_live_field(howdah_live_field name, const char *value, size_t length);

// Gives the order to the server, if a request runs here. May wait for room.
void howdah_rs_live_send(void);

// The descriptor to wait on, edge-triggered: it is written to after the server has sent something while the worker had
// announced that it waits, and it is never read. -1 in other modes. Bridge's own: do not read or close it.
int howdah_rs_wake_fd(void);

// Publishes, then announces that the worker will wait on the descriptor. False: there is something already, take it
// first.
bool howdah_rs_prepare_wait(void);

// After the wait, for whatever reason it ended: takes the announcement back.
void howdah_rs_woken(void);

// Shows the server everything written so far and wakes it if it sleeps.
void howdah_rs_publish(void);

// To which open request belong body, head, output, log lines and end from now on; 0 (or one that is not open): to none.
// Cheap. Not between howdah_rs_head_begin() and howdah_rs_head_end(). howdah_rs_done() leaves none selected.
void howdah_rs_select_request(uint64_t number);

// The next thing the server has sent; never waits. REQUEST: `*request` and `*number` are set, the memory (laid out as for
// howdah_rs_next_request()) is the request's until its howdah_rs_done(); it is not selected yet. CANCEL: `*number`, a
// request that is not done, and `*reason`, one of CANCEL_CLIENT_GONE and CANCEL_DEADLINE; howdah_rs_write() and
// howdah_rs_flush() return false for that request from now on. A request that does not end within a few seconds after
// its deadline costs the worker its life. STOP, once: no request follows, end with the last one; CANCEL may still
// come.
howdah_event howdah_rs_take_event(const WireRequest **request,
                                  uint64_t *number,
                                  unsigned int *reason);

// A connection pool of this worker, one of POOL_SLOTS: its name, and what `pool_number` lists. Only written to shared
// memory, where the server looks when somebody asks. A script's child must not call them.
void howdah_rs_pool_name(unsigned int slot, const char *name, size_t length);

// Name of a number of a connection pool in PHP and in the metrics; NULL after the last.
const char *howdah_rs_pool_number_name(unsigned int number);

// The numbers of a connection pool, in the order of `pool_number`. See `howdah_rs_pool_name()`.
void howdah_rs_pool_numbers(unsigned int slot, const uint64_t numbers[POOL_NUMBERS]);

// The current request's script has run past its time limit. Called from a signal handler.
void howdah_rs_timed_out(void);

// Before each fork() of a worker. `with_lane`: the child continues as this worker. Any other child has no lane, but
// separate memory in its place with the running request, and none of the descriptors that belong to the lane.
void howdah_rs_fork_begins(bool with_lane);

// After a fork(), in the parent.
void howdah_rs_fork_ends(bool with_lane);

// After a fork() without the lane, in the child.
void howdah_rs_became_script_child(void);

// Snapshot mode: the application has booted, and workers may be forked from this process; or they may not, for the
// reason in `why_not`. Returns false in this worker, and true in each forked worker, which has its own lane then.
bool howdah_rs_share_boot(const char *why_not, uint64_t boot_began_us);

// Notes an error of the current request's script, whose end it is.
void howdah_rs_error_note(howdah_error error);

// `true` if an error of the current request was noted; then also the amount of output in PHP's buffers at that time.
bool howdah_rs_error_noted(uint64_t *held_output);

// Adds one of the request's variables, under its name in `$_SERVER`, to the error that was noted.
void howdah_rs_error_variable(const char *name, size_t name_len, const char *value, size_t value_len);

// Makes the page: the line of its head that says what it is, and its body. Both are valid until
// howdah_rs_error_forget(). `server` says what ran the script.
void howdah_rs_error_page(const char *server,
                          size_t server_len,
                          const char **head,
                          size_t *head_len,
                          const char **body,
                          size_t *body_len);

// The page was sent, or is no longer wanted.
void howdah_rs_error_forget(void);

// Snapshot mode: whether this worker boots for others and has not said yet how that went.
bool howdah_rs_boots_for_others(void);

// The warm-up cannot be done: the server will replace this worker by one without, which `why` is the reason for.
void howdah_rs_warmup_failed(const char *why);

// Looks at what the warm-up requests were answered and tells the server. `compare`: look for what two visitors have in
// common as well; `removable`: the pool can do without warm-up requests in its snapshot. False when that is what will
// happen. Called in a fork of the worker, which ends then.
bool howdah_rs_judge_warmup(const howdah_warmup_path *paths, size_t n, bool compare, bool removable);

// The file of the PHP part of the async library with this index, in the order in which they are to be run: the path by
// which PHP knows it, zero-terminated, its text, which is not, and the time of its last change, for OPcache. All live as
// long as the process. Returns false behind the last one.
bool howdah_rs_library(size_t index,
                       const char **path,
                       const char **text,
                       size_t *text_len,
                       uint64_t *changed);

// The recipe of this name: its path, zero-terminated, its text, which is not, and the time of its last change, for
// OPcache. All live as long as the process. False: there is none.
bool howdah_rs_recipe(const char *name, const char **path, const char **text, size_t *text_len, uint64_t *changed);

// `true` if requests run the pool's script after the recipe of this name, which takes the snapshot.
bool howdah_rs_recipe_runs_script(const char *name);

// Starts PHP (modules, ini, OPcache, preload). Called once, in the zygote, before any fork. 0 on success. `boot`
// and all it points to live as long as the process.
extern int howdah_c_startup(const howdah_boot *boot);

// After a fork, in the child, before anything else of PHP: whatever a forked PHP must renew (random state, pids,
// timers, signal handlers, crash and stack-dump handlers).
extern void howdah_c_after_fork(void);

// Snapshot mode: forks a child of this process's parent, with separate locks and files. Returns like fork().
extern int howdah_c_fork_sibling(void);

// Async mode, in a process that the zygote has forked for this: has OPcache compile the library, which workers then
// find in shared memory. The process has to end afterwards; a request of PHP stays open in it.
extern void howdah_c_compile_library(void);

// Snapshot mode: from now on workers that are forked run warm-up requests only where what they leave is undone.
extern void howdah_c_refuse_warmup(void);

// Runs requests until howdah_rs_next_request() returns NULL or the worker must retire. Returns the process's exit
// status; the caller ends the process with _exit() after howdah_c_shutdown().
extern int howdah_c_worker_run(void);

// Ends PHP in this process (module shutdown), in a worker or in the zygote.
extern void howdah_c_shutdown(void);

// Writes the current PHP stack of this process as text ("#0 /path/file.php:12 function()\n"...) into `buffer`,
// returns the length. Async-signal-safe: reads memory only, allocates nothing. Called from a signal handler of a
// worker that is about to be killed.
extern size_t howdah_c_dump_stack(char *buffer, size_t size);

// The lines of execution of the worker whose memory this descriptor shows, at most so many; `all`: how many there are.
// None while it has no request, unless they are asked for (`idle`). For the zygote, which has all variables of PHP where
// its workers have them.
extern size_t howdah_c_read_lines(int memory,
                                  bool idle,
                                  howdah_line *lines,
                                  size_t most,
                                  size_t *all);

// The frames from this one outwards. Returns how many were read.
extern size_t howdah_c_read_stack(int memory, uint64_t innermost, howdah_frame *frames, size_t most);

// Name of a frame's function. `false`: it has gone.
extern bool howdah_c_read_function(int memory, uint64_t function, howdah_function_name *name);

// The first text among a frame's arguments; or (`of_statement`) the query of the PDO statement whose method it is.
// Returns its length, at most `size`.
extern size_t howdah_c_read_query(int memory, uint64_t frame, bool of_statement, char *text, size_t size);

// The text of C at this address. Returns its length, at most `size`.
extern size_t howdah_c_read_text(int memory, uint64_t address, char *text, size_t size);

// PHP's version as a string literal, e.g. "8.2.35".
extern const char *howdah_c_php_version(void);

// The version of the libphp that is loaded: 80200 for 8.2.0, and for any 8.2. Needs no started PHP.
extern uint32_t howdah_c_loaded_version(void);

// Where that libphp lies; NULL where the dynamic linker does not know. Never freed.
extern const char *howdah_c_loaded_library(void);

// Maximum size of a form that PHP reads before a script runs, in bytes; 0 without a limit, or if it parses no
// forms.
extern uint64_t howdah_c_form_limit(void);

// The value of an ini setting at this moment, or NULL. Valid until PHP changes it.
extern const char *howdah_c_setting(const char *name);

// Prints phpinfo() or (`modules`) the names of all modules on standard output. In a process that serves nothing.
extern void howdah_c_print(bool modules);

// The pool has a sandbox. Once, in the zygote, after howdah_c_startup(). The rules live as long as the process.
// `no_programs`: the kernel refuses to run any, and attempts are logged.
extern void howdah_c_sandbox_code(const howdah_code_rule *rules, size_t n, bool no_programs);

// Writes where PHP is and for which request ("in /path/file.php:12 (/uri)"), returns the length.
// Async-signal-safe.
extern size_t howdah_c_place(char *buffer, size_t size);

// `true` if one more refusal may be logged in this second. Async-signal-safe.
extern bool howdah_c_may_log_refusal(void);

#endif  /* HOWDAH_BRIDGE_H */
