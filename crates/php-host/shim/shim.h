/* What the shim's own files share: the state of the current call and the functions each file offers the others. The
 * border to Rust is bridge.h; PHP's version differences are in compat.h. */
#ifndef HOWDAH_SHIM_H
#define HOWDAH_SHIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memrchr */
#endif

#include "bridge.h"
#include "compat.h"

/* Exported to Rust; everything else is hidden by -fvisibility=hidden. */
#define SHIM_EXPORT __attribute__((visibility("default")))

/* How a mode lets the loop know what became of a call. */
typedef enum shim_outcome {
    SHIM_DONE,   /* the worker can take the next call */
    SHIM_RETIRE, /* the worker's state cannot be trusted: answer this call, then end */
} shim_outcome;

/* One way to run calls. The loop (loop.c) holds the one zend_try and calls these in the order
 * boot, (run, after, reset)*. `boot` and `reset` may be NULL. */
typedef struct shim_mode {
    const char *name;
    /* One script lives as long as the worker and takes calls itself (worker_loop.h): `run` runs it, `after` ends it. */
    bool resident;
    /* What a call does to the resident script is undone after it. */
    bool restores;
    /* Several calls at once. */
    bool concurrent;
    /* Once per worker, before its first call. SHIM_RETIRE ends the worker. */
    shim_outcome (*boot)(void);
    /* Prepares PHP for shim.call and runs the script. May be left by a PHP bailout. */
    shim_outcome (*run)(void);
    /* Releases the script's resources; called after a bailout too. */
    shim_outcome (*after)(void);
    /* Brings back what the next call must find, once the call was reported done. */
    void (*reset)(void);
} shim_mode;

extern const shim_mode shim_mode_async;
extern const shim_mode shim_mode_classic;
extern const shim_mode shim_mode_snapshot;
extern const shim_mode shim_mode_worker;

/* The state of this process. Not reset between calls unless it says so. */
typedef struct shim_state {
    const howdah_boot *boot;
    const howdah_worker_spec *worker;
    const shim_mode *mode;

    /* The current call; call is NULL between calls. */
    const WireCall *call;
    const WireVar *vars;
    const char *strings;
    bool response_ended;   /* the client has its whole answer; later output is dropped */
    bool response_refused; /* the client has gone */
    uint64_t peak_memory;  /* of the current call, read before PHP resets it */

    uint64_t calls_done;
    bool script_child; /* this process was forked by a script; the lane is not its own */
} shim_state;

extern shim_state shim;

/* --- mode_classic.c --- */

/* The answer for a script that may not run: 403 or 404. */
void shim_answer_instead(unsigned status);

/* --- loop.c --- */

/* Makes a call the current one. */
void shim_call_set(const WireCall *call);
/* Waits for a call and makes it the current one. False when the worker shall end. */
bool shim_call_take(void);
/* Reports the current call done. */
void shim_call_finish(bool retire);
/* Ends the client's answer, once. True for the call that did it. */
bool shim_response_end(bool done_follows);
/* Whether the worker has reached max_requests or max_memory with the current call. */
bool shim_used_up(void);

/* --- fork.c --- */

/* Marks the processes that scripts fork from now on. */
void shim_fork_watch(void);

/* --- random_source.c --- */

/* From now on this thread takes random bytes from the kernel's generator without system calls, where there is one. */
void shim_random_install(void);

/* --- startup.c --- */
extern sapi_module_struct shim_sapi_module;

/* --- sapi_input.c --- */

/* Spelling of the variables that travel as a number. */
typedef struct shim_known_name {
    const char *text;
    size_t length;
} shim_known_name;
extern const shim_known_name shim_known_names[HOWDAH_VAR_COUNT + 1];
/* SHIM_VAR_SCRIPT_NAME and so on. */
#define SHIM_VAR_NUMBER(number, name) SHIM_VAR_##name = (number),
typedef enum shim_var { HOWDAH_VAR_NAMES(SHIM_VAR_NUMBER) } shim_var;

/* An extension that is loaded, or NULL. */
static inline zend_module_entry *shim_extension(const char *name) {
    return zend_hash_str_find_ptr(&module_registry, name, strlen(name));
}

void shim_input_shutdown(void);
/* The value of a variable of the current call, NUL-terminated, or NULL and length 0. Valid until the call is done. */
const char *shim_known_var(shim_var number, size_t *value_len);
/* Name of a variable of the current call. */
const char *shim_var_name(const WireVar *var, size_t *length);
/* A string of the current call, NUL-terminated; "" for an absent one. */
static inline const char *shim_text(StrRef ref) {
    return ref.len != 0 ? shim.strings + ref.off : "";
}
/* Fills SG(request_info) from the current call; takes it back. */
void shim_input_prepare(void);
void shim_input_release(void);

size_t shim_sapi_read_post(char *buffer, size_t size);
char *shim_sapi_read_cookies(void);
char *shim_sapi_getenv(const char *name, size_t name_len);
zend_result shim_sapi_request_time(double *time);

/* --- server_array.c --- */

/* Makes the interned names, while PHP's modules start. */
void shim_server_array_startup(void);
/* Puts the call's variables where PHP looks for the environment ($_ENV, getenv()) and watches ext/filter, after PHP's
 * modules have started. */
void shim_server_array_hook(void);
/* Forgets the finished call. */
void shim_server_array_reset(void);
/* Lets go of the $_SERVER that a resident script's calls share, while PHP's memory is still there. */
void shim_kept_forget(void);
void shim_sapi_register_variables(zval *array);

/* --- sapi_output.c --- */
size_t shim_sapi_write(const char *data, size_t length);
void shim_sapi_flush(void *server_context);
int shim_sapi_send_headers(sapi_headers_struct *headers);
/* Sends the headers set so far as an interim answer. */
int shim_send_interim(unsigned status);

/* --- sapi_functions.c --- */
extern zend_module_entry shim_module;
/* Writes a line into the server's log, `context` behind the message as JSON. */
void shim_log_with_context(int level, const zend_string *message, HashTable *context);
/* Puts `handler` before an internal function; returns the function's own handler, or NULL when there is no such
 * function. */
zif_handler shim_watch_function(const char *name, size_t name_len, zif_handler handler);

/* --- script.c --- */

/* Opens nothing: checks that the current call's script may run, goes to its directory and describes it to PHP. Returns
 * 0, or the HTTP status to answer with. */
unsigned shim_script_prepare(zend_file_handle *file);
/* Watches chdir(), after PHP's modules have started. */
void shim_script_startup(void);

/* --- debugger.c --- */

/* In a mode whose script takes calls, before it boots. */
void shim_debugger_prepare(void);
/* At the beginning of a call: opens a debugger's session if the request asks for one. */
void shim_debugger_begin(void);

/* --- user_ini.c --- */
int shim_sapi_activate(void);
void shim_user_ini_shutdown(void);

/* --- log.c --- */
void shim_log_line(int level, const char *line, size_t length);
void shim_sapi_log(const char *message, int level);
void shim_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
