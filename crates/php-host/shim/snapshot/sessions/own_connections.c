/* A driver's memory says which descriptor a connection has and that it is idle, and nothing else that differs between
 * two connections, except MySQL's connection id and PostgreSQL's two numbers with which a query is cancelled. So a
 * forked worker keeps the driver's state of the boot: a function of the application opens a connection as it did at
 * boot, that takes the descriptor of the boot's, and the restore that follows makes the driver forget the opening.
 *
 * MySQL's id is only shown to scripts. PostgreSQL's numbers must be the worker's own, or it would cancel queries of
 * another: they are searched in the snapshot, and replaced there. */
#include "snapshot/sessions/own_connections.h"

#include "shim.h"
#include "modes/script_loop.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/sessions/tap.h"

#include <fcntl.h>
#include <sys/socket.h>

static zval openers; /* an array, or undefined */

/* Calls a function that opens a connection. Returns its descriptor, or -1: none is left open, or there is an
 * exception. */
static int open_by(zval *function) {
    zval result;
    ZVAL_UNDEF(&result);
    tap_opening_begin();
    call_user_function(NULL, NULL, function, &result, 0, NULL);
    zval_ptr_dtor(&result);
    const int fd = tap_opening_end();
    return EG(exception) == NULL ? fd : -1;
}

/* In other modes each worker boots for itself, so the function is called only here. */
PHP_FUNCTION(Howdah_connect_each_worker) {
    zend_fcall_info function;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(function, cache)
    ZEND_PARSE_PARAMETERS_END();
    const int fd = open_by(&function.function_name);
    if (fd < 0 || !snapshot_awaited()) {
        return;
    }
    if (Z_TYPE(openers) != IS_ARRAY) {
        array_init(&openers);
    }
    Z_TRY_ADDREF(function.function_name);
    zend_hash_next_index_insert(Z_ARRVAL(openers), &function.function_name);
    tap_opened_by(fd, zend_hash_num_elements(Z_ARRVAL(openers)));
}

/* Returns the first renewable connection from the n-th on, and counts on; NULL at the end. */
static tap *next_renewable(size_t *n) {
    tap *t;
    while ((t = tap_of_snapshot((*n)++)) != NULL && !tap_is_renewable(t)) {
    }
    return t;
}

bool shim_own_connections_offer(void) {
    /* There, the process that forks for each request would have to open them without a restore. */
    if (snapshot_stats()->way == SNAPSHOT_WAY_FORK) {
        return false;
    }
    bool any = false;
    size_t n = 0;
    for (const tap *t; (t = next_renewable(&n)) != NULL;) {
        snapshot_own_in_forks(t->fd);
        any = true;
    }
    return any;
}

/* Until the worker has its own connections, its descriptors are those of another process: a driver that closes one must
 * not end the session at the server. */
static bool detach_from_connections(void) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    bool parted = true;
    size_t n = 0;
    for (const tap *t; (t = next_renewable(&n)) != NULL;) {
        parted = snapshot_replace_boot_descriptor(t->fd, pair[0]) && parted;
    }
    /* The restore closes both ends. */
    return parted;
}

/* Returns the renewable connection that the function with this number opens, or NULL. */
static tap *renewable_of(uint32_t opener) {
    size_t n = 0;
    tap *t;
    while ((t = next_renewable(&n)) != NULL && t->opener != opener) {
    }
    return t;
}

/* In the order of the boot: a function may rely on the one before it. */
static const char *open_all(void) {
    for (uint32_t opener = 1; opener <= zend_hash_num_elements(Z_ARRVAL(openers)); opener++) {
        tap *t = renewable_of(opener);
        if (t == NULL) {
            continue;
        }
        const int fd = open_by(zend_hash_index_find(Z_ARRVAL(openers), opener - 1));
        if (EG(exception) != NULL) {
            shim_loop_report_exception();
            return "a function of Howdah\\connect_each_worker() has failed";
        }
        if (fd < 0 || !tap_opened_instead(t, fd)) {
            return "a function of Howdah\\connect_each_worker() has left no connection open";
        }
    }
    return NULL;
}

const char *shim_own_connections_open(void) {
    if (!detach_from_connections()) {
        return "no descriptor is free for the worker's own connection";
    }
    const char *volatile trouble = "a function of Howdah\\connect_each_worker() has ended the script";
    zend_try {
        trouble = open_all();
    }
    zend_end_try();
    return trouble;
}

const char *shim_own_connections_set_up(void) {
    size_t n = 0;
    for (tap *t; (t = next_renewable(&n)) != NULL;) {
        if (!tap_renew(t)) {
            return "the worker's own connection has other settings than the boot's: the server's settings have changed";
        }
    }
    return NULL;
}
