/* Warm-up of snapshot mode: requests that run before the snapshot, so that everything they load and build is in it, and
 * in two more rounds on the finished snapshot. The recorded responses show warmup_check.rs whether a request has left
 * something that would now be in the responses to all visitors.
 *
 * With a worker script, these requests are turns of its loop like any other, including the loop's body. So a turn
 * begins in one call of frankenphp_handle_request() and ends in the next one, and the snapshot is taken in the call
 * after the last.
 *
 * Only the worker that boots for others keeps a record: each path is requested by visitors without cookies, twice on
 * the snapshot and, with warmup_check, twice without the warm-up: for a worker script in forks of the booted
 * application, for a boot file before the boot. */
#include "snapshot/php/warmup.h"

#include "shim.h"
#include "modes/request_start.h"
#include "modes/reset.h"
#include "modes/script_loop.h"
#include "sapi/current_request.h"
#include "sapi/input.h"
#include "sapi/log.h"
#include "sapi/server_array.h"
#include "sapi/whole_request.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/random.h"

#include <errno.h>
#include <ext/standard/basic_functions.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* Rounds of warm-up requests before the snapshot: the first request builds the application's services, a second one
 * takes the code paths of an application that has run before, and a third one does what all later ones will do. */
#define HANDLER_ROUNDS 3
/* Maximum number of rounds with PHP's JIT, which compiles functions called some hundred times. After a restore it
 * counts from the snapshot on again, so whatever is not compiled by then never will be. No further round begins after
 * the number of seconds below. These rounds call only the handler: loops that count their requests end after some
 * hundred. */
#define JIT_ROUNDS 1000
#define JIT_SECONDS 3
/* Time limit for all requests in forks together; the check ignores those that are missing then. */
#define ALONE_SECONDS 10
/* Maximum depth of the search for strings in a session. */
#define SESSION_DEPTH 8

/* True while a request of this file runs: its output is not read. */
static bool running;
/* Number of turns of the loop that have begun. */
static size_t turns;
/* True in a fork in which no warm-up request has run. */
static bool alone;
/* True if all turns have run before the snapshot. */
static bool in_snapshot;
/* Set in the zygote: this application's warm-up requests leave something, so they run only where it is undone. */
static bool refused;

/* One entry per path, in memory that forks share; NULL if nothing is recorded. */
static howdah_warmup_path *paths;
/* Record for the output of the running request, or NULL. */
static howdah_warmup_response *recording;
static size_t current_path;
/* Number of connections that were open before the boot. */
static size_t connections_before;

static zval after_callbacks; /* an array, or undefined */

SHIM_EXPORT void howdah_c_refuse_warmup(void) {
    refused = true;
}

/* --- recording ---------------------------------------------------------------------------------------------------- */

/* Returns the number of sockets that have a peer. */
static size_t connections(void) {
    struct sockaddr_storage peer;
    size_t n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        socklen_t size = sizeof peer;
        n += getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
    }
    return n;
}

void shim_warmup_prepare(void) {
    if (shim.boot->n_warmup == 0 || !howdah_rs_boots_for_others()) {
        return;
    }
    /* Before the engine lists the mappings: this memory does not belong to the application. */
    void *memory =
        mmap(NULL, shim.boot->n_warmup * sizeof *paths, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    paths = memory == MAP_FAILED ? NULL : memory;
    connections_before = connections();
}

static void append(char *to, uint32_t *length, size_t room, const char *data, size_t size) {
    if (size > room - *length) {
        size = room - *length;
    }
    memcpy(to + *length, data, size);
    *length += (uint32_t)size;
}

void shim_warmup_output(const char *data, size_t length) {
    if (recording != NULL) {
        append(recording->body, &recording->body_length, sizeof recording->body, data, length);
    }
}

void shim_warmup_head(unsigned status, const sapi_headers_struct *headers) {
    if (recording == NULL) {
        return;
    }
    recording->status = status;
    zend_llist_position position;
    zend_llist *list = (zend_llist *)&headers->headers;
    const sapi_header_struct *header = zend_llist_get_first_ex(list, &position);
    for (; header != NULL; header = zend_llist_get_next_ex(list, &position)) {
        append(recording->head, &recording->head_length, sizeof recording->head, header->header, header->header_len);
        append(recording->head, &recording->head_length, sizeof recording->head, "\n", 1);
    }
}

static void record_strings(const char *name, size_t name_len, const zval *value, int depth);

static void record_table(HashTable *table, int depth) {
    if (depth == 0 || table == NULL || GC_IS_RECURSIVE(table)) {
        return;
    }
    GC_TRY_PROTECT_RECURSION(table);
    zend_ulong number;
    zend_string *key;
    zval *value;
    ZEND_HASH_FOREACH_KEY_VAL_IND(table, number, key, value) {
        (void)number;
        record_strings(key != NULL ? ZSTR_VAL(key) : "", key != NULL ? ZSTR_LEN(key) : 0, value, depth);
    }
    ZEND_HASH_FOREACH_END();
    GC_TRY_UNPROTECT_RECURSION(table);
}

/* Runs no code of the application, so it skips objects that compute their properties. */
static void record_strings(const char *name, size_t name_len, const zval *value, int depth) {
    ZVAL_DEREF(value);
    if (Z_TYPE_P(value) == IS_ARRAY) {
        record_table(Z_ARRVAL_P(value), depth - 1);
    } else if (Z_TYPE_P(value) == IS_OBJECT && Z_OBJ_HT_P(value)->get_properties == zend_std_get_properties) {
        record_table(zend_std_get_properties(Z_OBJ_P(value)), depth - 1);
    } else if (Z_TYPE_P(value) == IS_STRING) {
        uint32_t *length = &recording->session_length;
        append(recording->session, length, sizeof recording->session, name, name_len);
        append(recording->session, length, sizeof recording->session, "=", 1);
        append(recording->session, length, sizeof recording->session, Z_STRVAL_P(value), Z_STRLEN_P(value));
        append(recording->session, length, sizeof recording->session, "\n", 1);
    }
}

void shim_warmup_session(void) {
    if (recording == NULL || !SHIM_HAS_SESSION()) {
        return;
    }
    if (PS(id) != NULL) {
        zval id;
        ZVAL_STR(&id, PS(id));
        record_strings(ZEND_STRL("session id"), &id, 1);
    }
    zval *session = zend_hash_str_find_ind(&EG(symbol_table), ZEND_STRL("_SESSION"));
    if (session != NULL) {
        record_strings("", 0, session, SESSION_DEPTH);
    }
}

void shim_warmup_responded(void) {
    if (!running) {
        return;
    }
    int code = SG(sapi_headers).http_response_code;
    uint32_t status = code == 0 ? 200 : (uint32_t)code;
    if (paths != NULL && !alone && status > paths[current_path].worst_status) {
        paths[current_path].worst_status = status;
    }
    if (recording != NULL && recording->status == 0) {
        recording->status = status;
    }
    recording = NULL;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

bool shim_warmup_running(void) {
    return running;
}

static void set_current_path(size_t path) {
    const WireRequest *request = shim.boot->warmup[path];
    running = true;
    current_path = path;
    shim_request_set(request);
    /* Output is dropped as after a response's end. */
    shim.response_ended = true;
}

static void discard_request(void) {
    shim_server_array_reset();
    shim.request = NULL;
    recording = NULL;
    running = false;
}

void shim_warmup_make_current(size_t number) {
    size_t round = number / shim.boot->n_warmup;
    set_current_path(number % shim.boot->n_warmup);
    if (paths != NULL && round < 2 && howdah_rs_boots_for_others()) {
        recording = &paths[current_path].responses[HOWDAH_RESPONSE_RESTORED + round];
    }
}

static bool jit_is_on(void) {
    if (INI_INT("opcache.jit_buffer_size") <= 0) {
        return false;
    }
    static const char *const off[] = {"", "0", "no", "off", "disable"};
    const char *setting = INI_STR("opcache.jit");
    for (size_t i = 0; setting != NULL && i < sizeof off / sizeof *off; i++) {
        if (strcasecmp(setting, off[i]) == 0) {
            return false;
        }
    }
    return setting != NULL;
}

/* Runs a request's handler and ends the response. False when the script is exiting. */
static bool handle(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    shim_request_start();
    shim_loop_limit_time();
    if (!shim_loop_run(function, cache) || shim.script_child) {
        return false;
    }
    shim_warmup_session();
    shim_loop_end_response();
    shim_warmup_responded();
    return true;
}

/* --- shutdown functions ----------------------------------------------------------------------------------------------
 *
 * A function that a request registers belongs to it and runs at its end. A function that code registers once, because
 * it boots when the first request needs it, has to run at the end of each later request. Both happen in warm-up
 * requests; a function that several of them have registered belongs to the request. */

#define MAX_REPEATED 64
static const void *repeated[MAX_REPEATED];
static size_t n_repeated;
/* The first index of functions that warm-up requests have registered, and of those that the running one has
 * registered. */
static zend_ulong first_of_warmup, first_of_turn;

static const void *code_of(const php_shutdown_function_entry *entry) {
    const zend_function *function = entry->fci_cache.function_handler;
    if (function == NULL) {
        return NULL;
    }
    return function->type == ZEND_USER_FUNCTION ? (const void *)function->op_array.opcodes
                                                : (const void *)function->internal_function.handler;
}

static zend_ulong next_shutdown_function(void) {
    const HashTable *functions = BG(user_shutdown_function_names);
    return functions == NULL ? 0 : (zend_ulong)(functions->nNextFreeElement < 0 ? 0 : functions->nNextFreeElement);
}

static void begin_shutdown_functions(void) {
    first_of_turn = next_shutdown_function();
    if (turns <= 1) {
        first_of_warmup = first_of_turn;
    }
}

static bool is_repeated(const void *code) {
    for (size_t i = 0; i < n_repeated; i++) {
        if (repeated[i] == code) {
            return true;
        }
    }
    return false;
}

static bool was_registered_before(const void *code) {
    for (zend_ulong i = first_of_warmup; i < first_of_turn; i++) {
        const php_shutdown_function_entry *entry = zend_hash_index_find_ptr(BG(user_shutdown_function_names), i);
        if (entry != NULL && code_of(entry) == code) {
            return true;
        }
    }
    return false;
}

/* Runs the functions that the request has registered, and drops those that an earlier request had registered as
 * well. */
static void end_shutdown_functions(void) {
    for (zend_ulong i = first_of_turn; i < next_shutdown_function(); i++) {
        php_shutdown_function_entry *entry = zend_hash_index_find_ptr(BG(user_shutdown_function_names), i);
        if (entry == NULL) {
            continue;
        }
        zval result;
        ZVAL_UNDEF(&result);
        const void *code = code_of(entry);
        SHIM_CALL_SHUTDOWN_FUNCTION(entry, &result);
        zval_ptr_dtor(&result);
        shim_loop_report_exception();
        /* exit() in a shutdown function ends only that function. */
        zend_clear_exception();
        bool again = is_repeated(code);
        if (!again && n_repeated < MAX_REPEATED && was_registered_before(code)) {
            repeated[n_repeated++] = code;
            again = true;
        }
        if (again) {
            zend_hash_index_del(BG(user_shutdown_function_names), i);
        }
    }
}

static void forget_shutdown_functions(void) {
    for (zend_ulong i = first_of_warmup; i < next_shutdown_function(); i++) {
        const php_shutdown_function_entry *entry = zend_hash_index_find_ptr(BG(user_shutdown_function_names), i);
        if (entry != NULL && is_repeated(code_of(entry))) {
            zend_hash_index_del(BG(user_shutdown_function_names), i);
        }
    }
}

static void end_round(void) {
    end_shutdown_functions();
    shim_loop_put_away();
    shim_reset_changed();
    discard_request();
}

static bool run_until_compiled(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    const time_t begun = time(NULL);
    const size_t n = shim.boot->n_warmup;
    for (size_t i = 0; i < (JIT_ROUNDS - HANDLER_ROUNDS) * n; i++) {
        if (i % n == 0 && time(NULL) - begun > JIT_SECONDS) {
            break;
        }
        set_current_path(i % n);
        begin_shutdown_functions();
        if (!handle(function, cache)) {
            return false;
        }
        end_round();
    }
    return true;
}

static bool call_after_callbacks(void) {
    if (Z_TYPE(after_callbacks) != IS_ARRAY) {
        return true;
    }
    zval *callback;
    bool done = true;
    ZEND_HASH_FOREACH_VAL(Z_ARRVAL(after_callbacks), callback) {
        zval result;
        ZVAL_UNDEF(&result);
        call_user_function(NULL, NULL, callback, &result, 0, NULL);
        zval_ptr_dtor(&result);
        done = EG(exception) == NULL;
        if (!done) {
            break;
        }
    }
    ZEND_HASH_FOREACH_END();
    zval_ptr_dtor(&after_callbacks);
    ZVAL_UNDEF(&after_callbacks);
    return done;
}

/* Asks the server to replace this worker with one that boots without warm-up. Returns where that is impossible. */
static void refuse(const char *why) {
    if (!howdah_rs_boots_for_others()) {
        shim_log(LOG_CRIT, "snapshot: warm-up: %s", why);
        return;
    }
    howdah_rs_warmup_failed(why);
    for (;;) {
        pause();
    }
}

shim_warmup_step shim_warmup_turn(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    const size_t n = shim.boot->n_warmup;
    if (shim.request != NULL) {
        end_round();
    }
    if (refused || n == 0) {
        return SHIM_WARMUP_DONE;
    }
    if (turns == HANDLER_ROUNDS * n) {
        forget_shutdown_functions();
        if (!call_after_callbacks()) {
            shim_loop_report_exception();
            refuse("a function of Howdah\\after_warmup() has failed");
            zend_bailout();
        }
        turns = 0;
        in_snapshot = true;
        return SHIM_WARMUP_DONE;
    }
    if (turns == (HANDLER_ROUNDS - 1) * n && jit_is_on() && !run_until_compiled(function, cache)) {
        return SHIM_WARMUP_TURN;
    }
    set_current_path(turns++ % n);
    begin_shutdown_functions();
    handle(function, cache);
    return SHIM_WARMUP_TURN;
}

void shim_warmup_script_ended(void) {
    if (turns == 0 || refused || shim.script_child) {
        return;
    }
    char why[400];
    (snprintf)(why, sizeof why, "the script ended with warm-up request %zu, of %.300s, or did not ask for another",
               turns, running ? shim_text(shim.request->uri) : "none");
    discard_request();
    refuse(why);
}

/* For boot files: runs whole classic requests before the boot. Everything that a PHP process keeps from one request to
 * the next, above all its compiled regular expressions, is in the snapshot then. */
void shim_warmup_process(void) {
    volatile size_t rounds = paths != NULL && shim.worker->warmup_check ? 2 : 1;
    for (volatile size_t i = 0; i < rounds * shim.boot->n_warmup; i++) {
        set_current_path(i % shim.boot->n_warmup);
        if (paths != NULL) {
            recording = &paths[current_path].responses[HOWDAH_RESPONSE_ALONE + i / shim.boot->n_warmup];
        }
        zend_first_try {
            shim_whole_request_run();
            shim_warmup_session();
        }
        zend_end_try();
        zend_first_try {
            shim_whole_request_end();
        }
        zend_end_try();
        discard_request();
    }
}

/* --- responses without warm-up ------------------------------------------------------------------------------------ */

/* Runs in a fork of the process; does not return. */
static void respond_in_fork(size_t path, size_t visitor, zend_fcall_info *function, zend_fcall_info_cache *cache)
    __attribute__((noreturn));
static void respond_in_fork(size_t path, size_t visitor, zend_fcall_info *function, zend_fcall_info_cache *cache) {
    /* If this fails, it fails in the worker too, which reports it. */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDERR_FILENO);
    shim_snapshot_random_apart();
    alone = true;
    set_current_path(path);
    recording = &paths[path].responses[HOWDAH_RESPONSE_ALONE + visitor];
    volatile bool whole = false;
    zend_try {
        whole = handle(function, cache);
    }
    zend_end_try();
    if (!whole) {
        zend_try {
            zend_clear_exception();
            shim_warmup_session();
            php_output_end_all();
            php_header();
        }
        zend_end_try();
        shim_warmup_responded();
    }
    _exit(0);
}

static void wait_for(pid_t child, time_t until) {
    int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    time_t left = until - time(NULL);
    struct pollfd polled = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0 || left <= 0 || poll(&polled, 1, (int)left * 1000) != 1) {
        kill(child, SIGKILL);
    }
    if (pidfd >= 0) {
        close(pidfd);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
}

void shim_warmup_ask_alone(zend_fcall_info *function, zend_fcall_info_cache *cache) {
    /* Two processes would use the same connection. */
    if (refused || paths == NULL || !shim.worker->warmup_check || connections() > connections_before) {
        return;
    }
    const time_t until = time(NULL) + ALONE_SECONDS;
    const pid_t parent = getpid();
    for (size_t i = 0; i < 2 * shim.boot->n_warmup; i++) {
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) {
                _exit(0);
            }
            respond_in_fork(i / 2, i % 2, function, cache);
        }
        if (child > 0) {
            wait_for(child, until);
        }
    }
}

/* --- the verdict -------------------------------------------------------------------------------------------------- */

void shim_warmup_judge(void) {
    if (paths == NULL || !howdah_rs_boots_for_others()) {
        return;
    }
    /* In a separate process: this one keeps its state of the snapshot. The child reports to the zygote itself. */
    pid_t child = snapshot_fork();
    if (child == 0) {
        bool stays = howdah_rs_judge_warmup(paths, shim.boot->n_warmup, shim.worker->warmup_check, in_snapshot);
        _exit(stays ? 0 : 1);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    madvise(paths, shim.boot->n_warmup * sizeof *paths, MADV_REMOVE);
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1) {
        for (;;) {
            pause();
        }
    }
}

/* Where no warm-up request runs before a snapshot, the function is not called. */
PHP_FUNCTION(Howdah_after_warmup) {
    zend_fcall_info function;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(function, cache)
    ZEND_PARSE_PARAMETERS_END();
    if (!snapshot_awaited()) {
        return;
    }
    if (Z_TYPE(after_callbacks) != IS_ARRAY) {
        array_init(&after_callbacks);
    }
    Z_TRY_ADDREF(function.function_name);
    zend_hash_next_index_insert(Z_ARRVAL(after_callbacks), &function.function_name);
}
