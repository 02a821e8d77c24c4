/* The border between C and Rust: everything the shim calls in Rust (howdah_rs_*) and everything Rust calls in the shim
 * (howdah_c_*). Rust functions return and never call back into PHP, so no Rust frame lies between a PHP bailout
 * (longjmp) and its target. Strings are borrowed for the duration of a call unless a comment says otherwise.
 *
 * In async mode howdah_rs_take_event() replaces howdah_rs_next_request(). The other functions then apply to the
 * selected request, and their output reaches the server with howdah_rs_publish(), howdah_rs_flush(),
 * howdah_rs_prepare_wait(), or when much of it is unpublished. Only writing may wait, for room that the server makes at
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

// Exit status of a worker whose script ended before it asked for a request.
#define HOWDAH_BOOT_FAILED 71

// Index of the first of the two responses to a path where no warm-up request had run.
#define HOWDAH_RESPONSE_ALONE 0

// Index of the first of the two responses on the finished snapshot.
#define HOWDAH_RESPONSE_RESTORED 2

// Number of responses to a path.
#define HOWDAH_RESPONSES 4

// The effect of an order.
enum howdah_live_kind {
    // Sends `Data` to a WebSocket connection, as text unless there is a field `Binary`.
    HOWDAH_LIVE_KIND_SEND = 1,
    // Closes a WebSocket connection: `Code` (decimal), `Data` (the reason).
    HOWDAH_LIVE_KIND_CLOSE = 2,
    // Adds a WebSocket connection to the subscribers of each `Topic`. With `After`, messages published after that id
    // are sent first. With `Keep`, a client that is too slow loses its oldest messages and not its connection.
    HOWDAH_LIVE_KIND_SUBSCRIBE = 3,
    // Removes a WebSocket connection from the subscribers of each `Topic`.
    HOWDAH_LIVE_KIND_UNSUBSCRIBE = 4,
    // Replaces the state that a WebSocket connection's events carry with `Data`.
    HOWDAH_LIVE_KIND_STATE = 5,
    // Publishes `Data` to each `Topic`, as text unless there is a field `Binary`. With an `Id` it is kept in the history.
    HOWDAH_LIVE_KIND_PUBLISH = 6,
    // Publishes a Mercure update: each `Topic`, `Data`, `Id`, `Type`, `Retry` (decimal), `Private`.
    HOWDAH_LIVE_KIND_UPDATE = 7,
    // A question: "1" if the WebSocket connection is open.
    HOWDAH_LIVE_KIND_EXISTS = 8,
    // A question: the number of the site's open WebSocket connections; with a `Topic`, of those subscribed to it.
    HOWDAH_LIVE_KIND_COUNT = 9,
    // A question: the ids and states of the connections that `Count` counts.
    HOWDAH_LIVE_KIND_CONNECTIONS = 10,
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
    // The number of messages that may wait for a client, in decimal digits; beyond it the oldest are dropped.
    HOWDAH_LIVE_FIELD_KEEP = 11,
};
typedef uint16_t howdah_live_field;

// An event from the server.
typedef enum {
    HOWDAH_EVENT_NONE,
    HOWDAH_EVENT_REQUEST,
    HOWDAH_EVENT_CANCEL,
    HOWDAH_EVENT_STOP,
    HOWDAH_EVENT_TEXT,
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

// The meaning of a part.
enum howdah_part_kind {
    // The script holds the connection; its first part, sent before the end of its response.
    HOWDAH_PART_KIND_ACCEPT = 1,
    // A text message.
    HOWDAH_PART_KIND_TEXT = 2,
    // A binary message.
    HOWDAH_PART_KIND_BINARY = 3,
    // The close: a `u16` code, then the reason. The last part.
    HOWDAH_PART_KIND_CLOSE = 4,
    // The script's process ends soon, so the client is to connect again (script → server, once).
    HOWDAH_PART_KIND_LEAVE = 5,
};
typedef uint32_t howdah_part_kind;

// Additional fields of `howdah_rs_done()`, in snapshot mode.
typedef struct {
    // Method by which written pages are found: snapshot_way in snapshot/engine/snapshot.h.
    uint32_t way;
    // Number of searches for written pages since the snapshot.
    uint32_t searches;
    // Number of pages put back by the last restore.
    uint32_t restored_pages;
    // Duration of the last restore, in nanoseconds.
    uint32_t restore_ns;
    // Number of sessions of boot-time connections that were reset at this request's end.
    uint32_t resets;
    // The worker ends, as it cannot be restored after this request.
    bool unfit;
} snapshot_report;

// Memory that is stored in the snapshot's file.
typedef struct {
    // Its addresses, in the zygote and all its workers.
    uint64_t start;
    uint64_t end;
    // Its place in the file.
    uint64_t offset;
} howdah_stored_area;

// An error that the application did not handle.
typedef struct {
    // PHP's name of it: "Fatal error".
    const char *kind;
    size_t kind_len;
    const char *message;
    size_t message_len;
    const char *file;
    size_t file_len;
    unsigned int line;
    // As written by `howdah_c_dump_stack()`.
    const char *stack;
    size_t stack_len;
    // Number of bytes in PHP's output buffers at the time of the error.
    uint64_t held_output;
} howdah_error;

// A response to a warm-up request.
typedef struct {
    // 0: there was no response.
    uint32_t status;
    uint32_t head_length;
    uint32_t session_length;
    uint32_t body_length;
    // Lines "Name: value\n".
    char head[8192];
    // Strings of the session, "name=value\n".
    char session[16384];
    // Truncated.
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

// Input of `howdah_c_startup()`. C keeps the pointer: the structure and everything it points to live as long as the
// process.
typedef struct {
    // Settings of workers.
    const howdah_worker_spec *worker;
    // Requests that a new worker runs before it takes others, laid out as in a lane.
    const WireRequest *const *warmup;
    size_t n_warmup;
    // `howdah_c_sandbox_code()` will follow.
    bool sandbox;
} howdah_boot;

// A line of execution in a worker; addresses refer to its memory.
typedef struct {
    // Numbers of the coroutine and of its request; both 0 outside of async mode.
    uint64_t coroutine;
    uint64_t request;
    // The innermost frame.
    uint64_t frame;
    // Text that describes what it waits for; 0: it is running.
    uint64_t waits_for;
} howdah_line;

// A frame of a worker's stack; addresses refer to its memory.
typedef struct {
    uint64_t frame;
    uint64_t function;
    // Distinguishes functions that have had the same address.
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

// A directory that workers may write to: files below it are never PHP or, with `code`, may be included.
typedef struct {
    // Canonical path.
    const char *path;
    size_t length;
    bool code;
} howdah_code_rule;

// Begins each part; `length` bytes follow.
typedef struct {
    // A `PartKind`.
    uint32_t kind;
    // At most 1 MiB.
    uint32_t length;
} howdah_part_head;

// The worker can take requests: reports this to the server, once.
void howdah_rs_ready(void);

// Writes a line to the server's log with the current request's id; level as in syslog(3), 0 emergency to 7 debug. Also
// works before the first request (boot messages).
void howdah_rs_log(int level, const char *message, size_t length);

// Waits for the next request and marks it running. Returns NULL if the worker must end, also after an error. The frame
// stays valid, in shared memory, until howdah_rs_done(). Layout: WireRequest, n_vars x WireVar, strings_len bytes,
// inline body. `idle_ms`: after so many milliseconds without a request, returns NULL and sets `*idle`; 0: waits
// without limit.
const WireRequest *howdah_rs_next_request(unsigned int idle_ms, bool *idle);

// Reads up to `size` bytes of the current request's body. Returns the number of bytes, 0 at the end. Does not block:
// the body is complete.
size_t howdah_rs_read_body(char *buffer, size_t size);

// Begins the head of a response with its status. `interim` heads are 1xx responses and may be sent several times
// before the real one.
void howdah_rs_head_begin(unsigned int status, bool interim);

// Sets the route that responds to the request; the response's head carries it to the server.
void howdah_rs_route(const char *name, size_t length);

// Adds a line "Name: value" to the head, without a line end.
void howdah_rs_head_line(const char *line, size_t length);

// Finishes the head.
void howdah_rs_head_end(void);

// Appends to the response's body. May wait for room. Returns false if the client has gone or the request was
// cancelled: the caller must then stop the script or drop its output.
bool howdah_rs_write(const char *data, size_t length);

// Sends everything written so far to the client now. Returns false if the client has gone or the request was
// cancelled.
bool howdah_rs_flush(void);

// Marks the response as complete for the client; the worker goes on with the request. Idempotent. `done_follows`: only
// PHP's own cleanup is left before howdah_rs_done(); after a short request, or one whose usage is reported, the server
// is then woken once for both. In async mode the end reaches the server when output is published next.
void howdah_rs_end_response(bool done_follows);

// Ends the request: the script's resources are released and the worker is free. Ends the response if it is still open.
// The frame from howdah_rs_next_request() is invalid afterwards.
void howdah_rs_done(uint64_t peak_memory, bool retire);

// Returns the current request to the server, for a worker that booted later; the worker must end at once. Returns
// false if part of its response has been sent. Not in async mode.
bool howdah_rs_give_back(uint64_t boot_began_us);

// Returns the state of the worker's pool as JSON, in a descriptor that the caller closes; -1: unavailable. For the
// current request of a worker that runs one at a time.
int howdah_rs_pool_status(void);

// Sets the additional fields of `howdah_rs_done()`, in snapshot mode.
void howdah_rs_snapshot_numbers(snapshot_report numbers);

// Begins an order for connections and channels.
void howdah_rs_live_begin(howdah_live_kind kind);

// Adds a field to the order. Returns false if the order would be too large; it must not be sent then.
bool howdah_rs_live_field(howdah_live_field name, const char *value, size_t length);

// Sends the order to the server if a request runs here. May wait for room.
void howdah_rs_live_send(void);

// Sends the order, which is a question, without waiting; the answer is an event of howdah_rs_take_event(). At most
// 16 (`MAX_QUESTIONS`) may be unanswered. Returns false if the server cannot be asked. Only in async mode.
bool howdah_rs_live_ask_later(void);

// Sends the order, which is a question, and waits for the answer: a descriptor of its text that the caller closes; -1:
// unavailable.
int howdah_rs_live_ask(void);

// The descriptor to wait on, edge-triggered: the server writes to it if it sends something after the worker announced
// that it waits; it is never read. -1 in other modes. It belongs to the bridge: do not read or close it.
int howdah_rs_wake_fd(void);

// Publishes everything, then announces that the worker will wait on the descriptor. Returns false if there is an event
// already; take it first.
bool howdah_rs_prepare_wait(void);

// Withdraws the announcement after the wait, whatever ended it.
void howdah_rs_woken(void);

// Makes everything written so far visible to the server and wakes it if it sleeps.
void howdah_rs_publish(void);

// Selects the open request to which body, head, output, log lines and end belong from now on; 0, or a request that is
// not open: none. Cheap. Must not be called between howdah_rs_head_begin() and howdah_rs_head_end(). howdah_rs_done()
// leaves none selected.
void howdah_rs_select_request(uint64_t number);

// Returns the script's end of a stream to the server, with which the selected request's script may hold its client's
// WebSocket connection; the caller closes it. -1: there is none, or it was taken before. Layout: howdah_part_head, then
// the bytes that it announces.
int howdah_rs_take_stream(void);

// Returns the next event from the server; never waits. REQUEST: `*request` and `*number` are set; the memory (laid out
// as for howdah_rs_next_request()) belongs to the request until its howdah_rs_done(); it is not selected yet. CANCEL:
// `*number` is a request that is not done, and `*reason` is CANCEL_CLIENT_GONE or CANCEL_DEADLINE; howdah_rs_write()
// and howdah_rs_flush() return false for that request from now on. If a request does not end within a few seconds
// after its deadline, the worker is killed. STOP, once: no request follows, end with the last one; CANCEL may still
// come. TEXT: `*number` is the answer to the oldest unanswered question of howdah_rs_live_ask_later(), a descriptor
// of its text that the caller closes.
howdah_event howdah_rs_take_event(const WireRequest **request, uint64_t *number, unsigned int *reason);

// Names a connection pool of this worker, one of POOL_SLOTS. The name and the numbers (`pool_number`) are only written
// to shared memory, which the server reads on demand. A script's child must not call these functions.
void howdah_rs_pool_name(unsigned int slot, const char *name, size_t length);

// Name of a connection pool's number in PHP and in the metrics; NULL after the last.
const char *howdah_rs_pool_number_name(unsigned int number);

// Sets the numbers of a connection pool, in the order of `pool_number`. See `howdah_rs_pool_name()`.
void howdah_rs_pool_numbers(unsigned int slot, const uint64_t numbers[POOL_NUMBERS]);

// Records that the current request's script has exceeded its time limit. Called from a signal handler.
void howdah_rs_timed_out(void);

// Before each fork() of a worker. `with_lane`: the child continues as this worker. Any other child gets no lane, but
// private memory at its address with the running request, and none of the lane's descriptors.
void howdah_rs_fork_begins(bool with_lane);

// After a fork(), in the parent.
void howdah_rs_fork_ends(bool with_lane);

// After a fork() without the lane, in the child.
void howdah_rs_became_script_child(void);

// Snapshot mode: the application has booted and workers may be forked from this process, unless `why_not` is a reason
// against it. Returns false in this worker, and true in each forked worker, which has its own lane then.
bool howdah_rs_share_boot(const char *why_not, uint64_t boot_began_us);

// Snapshot mode: sends the zygote the sealed file with the snapshot's memory, before `howdah_rs_share_boot()`.
void howdah_rs_offer_file(int file, const howdah_stored_area *areas, size_t n);

// Notes an error that ends the current request's script.
void howdah_rs_error_note(howdah_error error);

// `true` if an error of the current request was noted; sets `*held_output` to the number of bytes in PHP's output
// buffers at that time.
bool howdah_rs_error_noted(uint64_t *held_output);

// Adds one of the request's variables, under its name in `$_SERVER`, to the noted error.
void howdah_rs_error_variable(const char *name, size_t name_len, const char *value, size_t value_len);

// Renders the page: its `Content-Type` line and its body. Both are valid until howdah_rs_error_forget(). `server`
// names the software that ran the script.
void howdah_rs_error_page(const char *server,
                          size_t server_len,
                          const char **head,
                          size_t *head_len,
                          const char **body,
                          size_t *body_len);

// Forgets the page after it was sent, or if it is no longer wanted.
void howdah_rs_error_forget(void);

// Snapshot mode: `true` if this worker boots for others and has not reported the result yet.
bool howdah_rs_boots_for_others(void);

// Reports that the warm-up cannot be done, for the reason `why`. The server then replaces this worker with one without
// a warm-up.
void howdah_rs_warmup_failed(const char *why);

// Checks the responses to the warm-up requests and reports findings to the server. `compare`: also look for values
// that two visitors share; `removable`: the pool can do without warm-up requests in its snapshot. Returns false if
// the findings require that. Called in a fork of the worker, which ends then.
bool howdah_rs_judge_warmup(const howdah_warmup_path *paths, size_t n, bool compare, bool removable);

// Returns the file with this index of the PHP part of the async library, in the order in which the files must be
// run: the path under which PHP knows it, zero-terminated; its text, which is not; and a modification time for
// OPcache. All live as long as the process. Returns false after the last file.
bool howdah_rs_library(size_t index, const char **path, const char **text, size_t *text_len, uint64_t *changed);

// Returns the recipe with this name: its path, zero-terminated; its text, which is not; and a modification
// time for OPcache. All live as long as the process. Returns false if there is none.
bool howdah_rs_recipe(const char *name, const char **path, const char **text, size_t *text_len, uint64_t *changed);

// `true` if requests run the pool's script after the recipe with this name, which takes the snapshot.
bool howdah_rs_recipe_runs_script(const char *name);

// Starts PHP (modules, ini, OPcache, preload). Called once, in the zygote, before any fork. 0 on success. `boot`
// and all it points to live as long as the process.
extern int howdah_c_startup(const howdah_boot *boot);

// Called in the child after a fork, before any other PHP function: renews everything that a forked PHP must renew
// (random state, signal handlers).
extern void howdah_c_after_fork(void);

// Snapshot mode: forks a child of this process's parent, with separate locks and files. Returns like fork().
extern int howdah_c_fork_sibling(void);

// Async mode, in a process that the zygote has forked for this: has OPcache compile the library, which workers
// then find in shared memory. A PHP request stays open, so the process must end afterwards.
extern void howdah_c_compile_library(void);

// Snapshot mode: workers forked from now on run warm-up requests only if their effects are undone.
extern void howdah_c_refuse_warmup(void);

// Snapshot mode: `true` if a worker forked from the boot that began at this time cannot get its connections.
extern bool howdah_c_boot_is_outdated(uint64_t boot_began_us);

// Runs requests until the server sends no more or the worker must retire. Returns the process's exit
// status; the caller calls howdah_c_shutdown() and then _exit().
extern int howdah_c_worker_run(void);

// Ends PHP in this process (module shutdown), in a worker or in the zygote.
extern void howdah_c_shutdown(void);

// Writes the current PHP stack of this process as text ("#0 /path/file.php:12 function()\n"...) into `buffer`,
// returns the length. Async-signal-safe: reads memory only, allocates nothing.
extern size_t howdah_c_dump_stack(char *buffer, size_t size);

// Reads the lines of execution of the worker whose memory this descriptor refers to, at most `most`; `all`: their
// total number. Without a request or a coroutine there are none, unless `idle` is set. For the zygote, in which
// all PHP variables have the same addresses as in its workers.
extern size_t howdah_c_read_lines(int memory, bool idle, howdah_line *lines, size_t most, size_t *all);

// Reads the frames from this one outwards. Returns the number of frames read.
extern size_t howdah_c_read_stack(int memory, uint64_t innermost, howdah_frame *frames, size_t most);

// Reads the name of a frame's function. `false`: the function no longer exists.
extern bool howdah_c_read_function(int memory, uint64_t function, howdah_function_name *name);

// Reads the first string among a frame's first three arguments or, with `of_statement`, the query of the PDO
// statement whose method it is. Returns its length, at most `size`.
extern size_t howdah_c_read_query(int memory, uint64_t frame, bool of_statement, char *text, size_t size);

// Reads the C string at this address. Returns its length, at most `size`.
extern size_t howdah_c_read_text(int memory, uint64_t address, char *text, size_t size);

// PHP's version, e.g. "8.2.35"; before PHP has started, that of its headers.
extern const char *howdah_c_php_version(void);

// Version of the loaded libphp: 80200 for 8.2.0 and any other 8.2. Works before PHP is started.
extern uint32_t howdah_c_loaded_version(void);

// Path of that libphp; NULL if the dynamic linker does not know it. Never freed.
extern const char *howdah_c_loaded_library(void);

// Maximum size of a form that PHP reads before a script runs, in bytes; 0 without a limit, or if PHP does not
// parse forms.
extern uint64_t howdah_c_form_limit(void);

// The current value of an ini setting, or NULL. Valid until PHP changes it.
extern const char *howdah_c_setting(const char *name);

// Prints phpinfo() or (`modules`) the names of all modules on standard output. Only in a process that serves no
// requests.
extern void howdah_c_print(bool modules);

// Sets the rules of the pool's sandbox. Called once, in the zygote, after howdah_c_startup(). The rules live as
// long as the process. `no_programs`: the kernel refuses to run any, and attempts are logged.
extern void howdah_c_sandbox_code(const howdah_code_rule *rules, size_t n, bool no_programs);

// Writes the current PHP location and request ("in /path/file.php:12 (/uri)"), returns the length.
// Async-signal-safe.
extern size_t howdah_c_place(char *buffer, size_t size);

// `true` if one more refusal may be logged in this second. Async-signal-safe.
extern bool howdah_c_may_log_refusal(void);

#endif  /* HOWDAH_BRIDGE_H */
