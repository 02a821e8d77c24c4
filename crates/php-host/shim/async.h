/* What the files of async mode offer each other:
 *
 *     mode_async.c      the mode: what a worker script's frankenphp_handle_request() does here
 *     coroutine*.c      coroutines and the engine's state that goes with each
 *     async_loop.c      scheduler, timers, descriptors (epoll), calls from the server
 *     async_descriptors.c who waits for which descriptor
 *     async_admission.c when requests begin
 *     async_request.c   a request: its own superglobals, headers, output; opening and closing it
 *     async_image.c     the globals of PHP that belong to a request, and moving them
 *     async_libraries.c those of libraries that are more than values
 *     async_extensions.c those of extensions that do not export them
 *     async_ini.c       settings that a request has changed
 *     async_guard.c     parts of PHP that must not be left in the middle: compiler, autoloader, collector, fatal errors
 *     async_exclusive.c one connection, one coroutine at a time
 *     async_slice.c     time slices for handlers that compute
 *     async_audit.c     finds state that requests leave behind, for development
 *     async_hooks.c     has import_hooks.c put the functions of async_io.c, async_files.c and async_process.c in the
 * place of libc's async_stacks.c    where coroutines stand, as text; errors that name two of them; deadlocks
 *     async_pools.c     the connections of the library's pools; async_pools.h has its other two files
 *     async_class.c     Howdah\Coroutine, on which the PHP library (php/async) is built */
#ifndef HOWDAH_ASYNC_H
#define HOWDAH_ASYNC_H

#include "coroutine.h"

#include <poll.h>

/* --- mode_async.c --- */

/* True while coroutines run or may run. */
extern bool async_serving;
/* Serves calls until the server has no more. Always false: a script's loop around it ends. */
bool async_serve(zend_fcall_info *function, zend_fcall_info_cache *cache);
/* The worker's state is no longer trusted: what runs is finished, then the process ends. */
void async_drain(void);
bool async_draining(void);
/* All requests are done and no more will come: what still runs is to end. */
bool async_ending(void);
/* The limit of memory for all requests together. */
void async_set_memory_limit(void);
/* Takes what the server sent: new requests, cancellations, the end. */
void async_take_events(void);
/* Makes the engine call us at the next safe point of the current coroutine's code. */
void async_interrupt(void);

/* --- async_loop.c --- */

bool async_loop_startup(void);
void async_loop_shutdown(void);
/* Runs coroutines and takes calls until `finished()`. */
void async_loop_run(bool (*finished)(void));
/* Calls and descriptors are looked at before the next coroutine runs. */
void async_loop_end_turn(void);
/* Nanoseconds of the monotonic clock. */
uint64_t async_now(void);
/* The same, up to 10 ms ago, for a fraction of the time. */
uint64_t async_about_now(void);
/* The point in time `nanoseconds` from now; for huge values COROUTINE_FOREVER. */
uint64_t async_after(uint64_t nanoseconds);
void async_timer_add(coroutine *self);
void async_timer_remove(coroutine *self);

/* One descriptor that a coroutine waits for; lies on its stack. */
typedef struct async_watch {
    int fd;
    short events; /* POLLIN, POLLOUT, POLLPRI */
    short revents;
    /* By select(): whoever waits this way does not claim the descriptor for itself. */
    bool only_looks;
    coroutine *owner;
    struct async_watch *next;
} async_watch;

/* The current coroutine waits until one of the descriptors is ready. COROUTINE_WOKEN: at least one has revents.
 * -1: a descriptor cannot be watched (a file, a closed one): ask the kernel yourself. */
int async_wait_fds(async_watch *watches, unsigned count, uint64_t until, const char *what);
/* The same for one descriptor; COROUTINE_* or -1. */
int async_wait_fd(int fd, short events, uint64_t until, const char *what);
/* Another coroutine that waits for the same of this descriptor, or NULL. */
const coroutine *async_fd_taken(int fd, short events);
/* A descriptor is about to be closed: whoever waits for it goes on. */
void async_fd_closing(int fd);
/* The number has got another file: a stream socket that is being connected, or something else. */
void async_fd_new(int fd, bool connected);
/* Something was sent; all that has come was taken. */
void async_fd_sent(int fd);
void async_fd_emptied(int fd);
/* Events of a descriptor, as epoll tells them. */
void async_deliver(int fd, uint32_t events);
void async_descriptors_startup(int epoll);
void async_descriptors_shutdown(void);

/* --- async_request.c --- */

struct async_request {
    uint64_t number;
    /* Until it begins. */
    const WireCall *call;
    coroutine *main;
    /* Coroutines of this request that have not ended, the main one included. */
    unsigned coroutines;
    bool main_waits_for_others;
    /* Functions to call once the client has its answer. */
    zval after_response;
    struct async_ini_change *ini_changes;
    /* In the line of those that have not begun, or of those to be used again. */
    async_request *next;
    /* Superglobals that it has (async_image.c). */
    uint8_t superglobals;
    /* Pauses before it began (async_admission.c). */
    uint32_t pauses;
    /* The globals of PHP that are this request's, while another one's are in place. */
    unsigned char image[];
};

/* Opens a request for a call; it begins when it is its turn. False without memory. */
bool async_request_start(const WireCall *call, uint64_t number);
/* Starts its coroutine. */
void async_request_begin(async_request *request);
/* The client or the server gave the call up. */
void async_request_cancel(uint64_t number, const char *reason);
uint32_t async_request_count(void);
/* A coroutine of the request has ended. */
void async_request_leave(async_request *request);
/* What another coroutine than the main one prints goes where the main one's output goes, into its buffers. False: the
 * caller prints for the main one. */
bool async_output_to_main(const char *data, size_t length);
/* The function that is run for each request. */
void async_request_handler(zend_fcall_info *function, zend_fcall_info_cache *cache);

/* --- async_admission.c --- */

typedef enum async_admission {
    ADMISSION_EMPTY, /* nobody wants to begin */
    ADMISSION_OPEN,  /* the next may */
    ADMISSION_FULL,
} async_admission;
/* A request wants to begin. */
void async_admission_add(async_request *request);
/* Lets the next one begin; false if there is none or it may not yet. */
bool async_admission_next(void);
/* Lets this one begin, if it has not. */
void async_admission_begin_at_once(uint64_t number);
async_admission async_admission_state(void);
/* Until when a worker that has nothing to do waits before it lets more begin; and that it has. */
uint64_t async_admission_patience(void);
void async_admission_pause(void);
/* Once per turn of the loop. */
void async_admission_look(void);
void async_admission_ended(const async_request *request);

/* --- async_image.c --- */

void async_image_startup(void);
size_t async_image_size(void);
/* Puts the globals of `request` in place (NULL: those of the script between requests). Cheap when they are. A request
 * that begins gets what it inherits from the script's boot. */
void async_request_load(async_request *request);
/* Destroys what the globals in place hold, at the end of their request; then tells that nothing of them is left. */
void async_image_destroy(void);
void async_image_drop(void);

/* --- async_libraries.c --- */

/* Names the places to `add`; makes what is nobody's the request's own; ends what the request had. */
void async_libraries_places(void (*add)(void *at, size_t size));
void async_libraries_inherit(void);
void async_libraries_destroy(void);
/* An extension's globals; NULL: it is not loaded, or they are smaller than its headers say. */
void *async_globals_of(const char *extension, size_t size);
/* Where an extension has the error of the last call, as its first global; NULL: it is not loaded. */
int *async_last_error_of(const char *extension);

/* --- async_extensions.c --- */

/* What belongs to the code that runs: names the places to `add`; empties them for a new coroutine; frees what they hold
 * at its end. */
void async_extensions_running_places(void (*add)(void *at, size_t size));
void async_extensions_running_begin(void);
void async_extensions_running_end(void);
/* What belongs to a request, as in async_libraries.c. */
void async_extensions_request_places(void (*add)(void *at, size_t size));
void async_extensions_request_inherit(void);
void async_extensions_request_destroy(void);

/* --- async_ini.c --- */

typedef struct async_ini_change async_ini_change;
/* Settings changed until now are the worker's own. */
void async_ini_startup(void);
/* Takes the changes of the request in place back and notes them; makes noted changes again. */
async_ini_change *async_ini_take(void);
void async_ini_apply(async_ini_change *changes);
/* Takes the changes back for good. */
void async_ini_forget(void);
/* What a coroutine begins with, by the settings in place: PHP's copy of it is its neighbour's then. */
int async_ini_error_reporting(void);

/* --- async_guard.c --- */

/* Functions in which nothing may wait. Where drivers are guarded, see async_exclusive_install(). */
void async_guard_install(void);
void async_guard_startup(void);
void async_guard_shutdown(void);

/* --- async_exclusive.c --- */

/* Guards the objects of drivers. While PHP's modules are the only code there is. */
void async_exclusive_install(void);
/* Puts a function in the place of one of PHP's, which it finds with async_wrapped(). */
void async_wrap(zend_function *function, zif_handler wrapper);
zif_handler async_wrapped(const zend_execute_data *execute_data);
/* A coroutine was ended in the middle of a driver's method. */
void async_exclusive_forget(const coroutine *self);

/* --- async_slice.c --- */

void async_slice_startup(void);
/* A coroutine begins or goes on. */
void async_slice_begin(void);
/* Lets the others run if the current one has had its time. */
void async_slice_check(void);

/* --- async_audit.c --- */

void async_audit_startup(void);
/* Around a request's handler, with its globals in place; another request has begun meanwhile. */
void async_audit_begin(void);
void async_audit_overlap(void);
void async_audit_end(void);
/* A waiting call is about to be made where nothing may wait. */
void async_audit_blocked(void);
/* Around what a coroutine does between two waits. */
void async_audit_turn_begin(const coroutine *self);
void async_audit_turn_end(const coroutine *self);

/* --- async_hooks.c --- */

/* Replaces the functions in the loaded libraries. Called when a worker begins to serve, never in another mode. */
void async_hooks_install(void);

/* --- async_class.c --- */

void coroutine_class_startup(zend_class_entry *registered);
/* The object of a coroutine, a new reference. */
zend_object *coroutine_object_of(coroutine *self);
/* Whether this is it. */
bool coroutine_is(const coroutine *self, const zend_object *object);
/* The coroutine has ended: its object forgets it. */
void coroutine_object_release(coroutine *self);
/* The object no longer speaks for the coroutine; the reference that this had, or NULL. */
zend_object *coroutine_object_detach(coroutine *self);
/* The coroutine that an object stands for; NULL: it has ended. */
coroutine *coroutine_of_object(zend_object *object);
/* Calls the functions of a list (IS_UNDEF or an array), last one first, and empties it. */
void async_call_list(zval *list);
/* Deals with an exception that leaves a coroutine. */
void async_exit_or_report(void);
/* Throws one of the library's exceptions by its short name. */
void async_throw(const char *name, const char *message);

/* --- async_pools.c --- */

void async_pools_class_startup(void);
/* Writes the numbers of all connection pools to where the server looks for them. */
void async_pools_publish(void);
/* The pools take back what the coroutine has of them, without waiting. */
void async_pools_come_back(coroutine *holder);
/* The same for one that a fatal error has ended on its way: its pools are told nothing. */
void async_pools_let_go(coroutine *holder);

/* --- async_stacks.c --- */

void async_stacks_class_startup(void);
void async_stacks_startup(void);
/* Where the running code of the application stands, as pools note it; a new string. */
zend_string *async_here(void);
/* Where a coroutine stands, as Exception::getTraceAsString() has it; a new string. */
zend_string *async_stack_of(const coroutine *self);
/* File and line where a coroutine that does not run will go on; a new string. */
zend_string *async_place_of(const coroutine *self);
/* Logs and throws that the current coroutine wants a connection which another one has. */
void async_refuse_concurrent_use(const char *message, const coroutine *other);
/* The current coroutine wants to wait for what another one waits for already: logged; thrown by the second function, as
 * nothing can be thrown from inside a hook. */
void async_stream_taken(const coroutine *other);
void async_throw_stream_taken(void);
/* All coroutines wait for each other: logs their stacks and fails those that can be. */
void async_report_deadlock(void);

#endif
