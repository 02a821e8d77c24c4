/* Howdah\WebSocketConnection. Messages travel in a stream to the server, which speaks WebSocket with the client: parts
 * with a head (transport/connection_stream.rs). The kernel's buffers of that stream are the budget: a coroutine that
 * sends waits while the client is slow, and while nothing is received the server does not read from the client.
 *
 * A connection belongs to the request that accepted it. Other coroutines of the process may send, one after the other;
 * one at a time may receive. */
#include "async/core/websocket_connection.h"

#include "shim.h"
#include "async/core/descriptors.h"
#include "async/core/request.h"
#include "async/core/stream_input.h"
#include "async/core/throw.h"
#include "async/core/timers.h"
#include "async/core/worker.h"
#include "modes/reset.h"
#include "sapi/current_request.h"
#include "sapi/websocket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_MESSAGE (1 << 20)
/* Close codes: the connection ended without a close frame; the application failed. */
#define BROKEN 1006
#define FAILED 1011
#define NORMAL 1000
/* Descriptors below are left to select(). */
#define FIRST_DESCRIPTOR 1024
/* Time for sending the accept, and the close of a connection that the script has not closed. */
#define CLOSING UINT64_C(5000000000)
/* Messages in a row without a wait before other coroutines run. */
#define IN_A_ROW 64

/* A coroutine that waits to send; lies on its stack. */
typedef struct turn {
    coroutine *owner;
    struct turn *next;
} turn;

typedef struct connection {
    /* -1: closed. */
    int fd;
    const async_request *request;
    struct connection *older, *newer; /* list of the open ones */
    const coroutine *sender, *receiver;
    turn *turns;
    /* Asks the server for a close once no coroutine sends. */
    bool leave_due;
    /* The part that is being received: it survives a timeout. */
    stream_input input;
    howdah_part_head head;
    size_t received; /* of head and data */
    zend_string *data;
    /* For iteration. */
    zval current;
    zend_long key;
    zend_object std;
} connection;

/* The result of a write. */
typedef enum written {
    WRITTEN,
    WRITE_CLOSED,
    WRITE_CANCELLED,
    WRITE_CANNOT_WAIT,
} written;

static zend_class_entry *class_entry;
static zend_object_handlers handlers;
static connection *newest;

static connection *of(zend_object *object) {
    return (connection *)((char *)object - XtOffsetOf(connection, std));
}

static void drop(connection *self) {
    if (self->fd < 0) {
        return;
    }
    if (!shim.script_child) {
        async_fd_closing(self->fd);
    }
    close(self->fd);
    self->fd = -1;
    *(self->newer != NULL ? &self->newer->older : &newest) = self->older;
    if (self->older != NULL) {
        self->older->newer = self->newer;
    }
}

static void set_end(connection *self, zend_long code, const char *reason, size_t length) {
    zend_update_property_long(class_entry, &self->std, ZEND_STRL("code"), code);
    zend_update_property_stringl(class_entry, &self->std, ZEND_STRL("reason"), reason, length);
}

/* Lets other coroutines run from time to time when neither side ever waits. */
static void yield_periodically(void) {
    static unsigned in_a_row;
    if (++in_a_row % IN_A_ROW == 0 && coroutine_may_wait()) {
        coroutine_yield();
    }
}

/* --- sending --- */

/* Writes a part. An interrupted one leaves the stream unusable, so the connection ends then. */
static written write_part(connection *self, howdah_part_kind kind, const char *data, size_t length, uint64_t until) {
    howdah_part_head head = {.kind = kind, .length = (uint32_t)length};
    size_t done = 0;
    while (done < sizeof head + length) {
        if (self->fd < 0) {
            return WRITE_CLOSED;
        }
        struct iovec parts[2];
        size_t of_head = MIN(done, sizeof head);
        size_t of_data = done - of_head;
        parts[0] = (struct iovec){(char *)&head + of_head, sizeof head - of_head};
        parts[1] = (struct iovec){(char *)data + of_data, length - of_data};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t sent = sendmsg(self->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) {
            done += (size_t)sent;
            continue;
        }
        if (errno == EINTR) {
            continue;
        }
        if (errno != EAGAIN) {
            return WRITE_CLOSED;
        }
        bool may_wait = coroutine_may_wait();
        int woken = may_wait ? async_wait_fd(self->fd, POLLOUT, until, "send") : -1;
        if (woken == COROUTINE_WOKEN) {
            continue;
        }
        if (done > 0) {
            drop(self);
        }
        return !may_wait ? WRITE_CANNOT_WAIT : woken == COROUTINE_CANCELLED ? WRITE_CANCELLED : WRITE_CLOSED;
    }
    return WRITTEN;
}

static void wake_next_sender(const connection *self) {
    if (self->sender == NULL && self->turns != NULL) {
        coroutine_wake(self->turns->owner, COROUTINE_WOKEN);
    }
}

/* Waits until no other coroutine sends. False: cancelled, or this coroutine may not wait. */
static bool lock_sending(connection *self) {
    while (self->sender != NULL) {
        if (!coroutine_may_wait()) {
            return false;
        }
        turn mine = {.owner = coroutine_current};
        turn **at = &self->turns;
        while (*at != NULL) {
            at = &(*at)->next;
        }
        *at = &mine;
        coroutine_woken woken = coroutine_wait(COROUTINE_FOREVER, "send");
        for (at = &self->turns; *at != &mine; at = &(*at)->next) {
        }
        *at = mine.next;
        if (woken == COROUTINE_CANCELLED) {
            /* It may have been this one's turn. */
            wake_next_sender(self);
            return false;
        }
    }
    self->sender = coroutine_current;
    return true;
}

static void leave(connection *self) {
    self->leave_due = self->sender != NULL;
    if (!self->leave_due && self->fd >= 0) {
        howdah_part_head head = {.kind = HOWDAH_PART_KIND_LEAVE};
        self->leave_due = send(self->fd, &head, sizeof head, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EAGAIN;
    }
}

static void unlock_sending(connection *self) {
    self->sender = NULL;
    wake_next_sender(self);
    if (self->leave_due) {
        leave(self);
    }
}

static written send_part(connection *self, howdah_part_kind kind, const char *data, size_t length, uint64_t until) {
    if (!lock_sending(self)) {
        return coroutine_may_wait() ? WRITE_CANCELLED : WRITE_CANNOT_WAIT;
    }
    written result = write_part(self, kind, data, length, until);
    unlock_sending(self);
    return result;
}

/* Throws if the part could not be sent for a reason of the caller. */
static void report_unsent(written result) {
    if (result == WRITE_CANCELLED) {
        async_throw_cancelled();
    } else if (result == WRITE_CANNOT_WAIT) {
        zend_throw_error(
            NULL, "Cannot wait here for a slow client: PHP is in an autoloader, the compiler or the garbage collector");
    }
}

static written send_close(connection *self, uint16_t code, const char *reason, size_t length, uint64_t until) {
    char data[2 + WEBSOCKET_MAX_REASON];
    data[0] = (char)(code >> 8);
    data[1] = (char)(code & 0xff);
    memcpy(data + 2, reason, length);
    return send_part(self, HOWDAH_PART_KIND_CLOSE, data, 2 + length, until);
}

/* --- receiving --- */

typedef enum got {
    GOT_PART,
    GOT_END,
    GOT_TIMEOUT,
    GOT_EXCEPTION,
} got;

/* Waits for the rest of a part: its head, then its data. */
static got receive_part(connection *self, uint64_t until) {
    for (;;) {
        if (self->fd < 0) {
            return GOT_END;
        }
        char *to;
        size_t size;
        if (self->received < sizeof self->head) {
            to = (char *)&self->head + self->received;
            size = sizeof self->head - self->received;
        } else {
            if (self->data == NULL) {
                self->data = zend_string_alloc(self->head.length, 0);
            }
            size_t of_data = self->received - sizeof self->head;
            if (of_data == self->head.length) {
                ZSTR_VAL(self->data)[of_data] = '\0';
                self->received = 0;
                return GOT_PART;
            }
            to = ZSTR_VAL(self->data) + of_data;
            size = self->head.length - of_data;
        }
        bool may_skip = until == COROUTINE_FOREVER && coroutine_may_wait();
        ssize_t received = stream_input_take(&self->input, self->fd, to, size, may_skip);
        if (received > 0) {
            self->received += (size_t)received;
            continue;
        }
        if (received < 0 && errno == EINTR) {
            continue;
        }
        if (received == 0 || errno != EAGAIN) {
            return GOT_END;
        }
        if (!coroutine_may_wait()) {
            zend_throw_error(NULL, "Cannot wait here: PHP is in an autoloader, the compiler or the garbage collector");
            return GOT_EXCEPTION;
        }
        /* An event that came since is not missed, whether or not something was sent. */
        async_fd_sent(self->fd);
        int woken = async_wait_fd(self->fd, POLLIN, until, "receive");
        if (woken == COROUTINE_TIMED_OUT) {
            return GOT_TIMEOUT;
        }
        if (woken == COROUTINE_CANCELLED) {
            async_throw_cancelled();
            return GOT_EXCEPTION;
        }
        if (woken != COROUTINE_WOKEN) {
            return GOT_END;
        }
    }
}

/* The end of the connection, by the server. */
static void end(connection *self, const zend_string *close) {
    if (self->fd < 0) {
        return;
    }
    if (close != NULL && ZSTR_LEN(close) >= 2) {
        const unsigned char *bytes = (const unsigned char *)ZSTR_VAL(close);
        set_end(self, bytes[0] << 8 | bytes[1], ZSTR_VAL(close) + 2, ZSTR_LEN(close) - 2);
    } else {
        set_end(self, BROKEN, "", 0);
    }
    drop(self);
}

/* The next message, or NULL: at the end of the connection, and with an exception. */
static zend_string *receive(connection *self, uint64_t until) {
    if (self->receiver != NULL) {
        async_throw("ConcurrentUseError", "Another coroutine receives from this connection");
        return NULL;
    }
    yield_periodically();
    self->receiver = coroutine_current;
    got result = receive_part(self, until);
    self->receiver = NULL;
    if (result == GOT_TIMEOUT) {
        async_throw("TimeoutException", "No message arrived in time");
        return NULL;
    }
    if (result == GOT_EXCEPTION) {
        return NULL;
    }
    zend_string *data = self->data;
    self->data = NULL;
    if (result == GOT_PART && self->head.kind != HOWDAH_PART_KIND_CLOSE) {
        zend_update_property_bool(class_entry, &self->std, ZEND_STRL("binary"),
                                  self->head.kind == HOWDAH_PART_KIND_BINARY);
        return data;
    }
    end(self, result == GOT_PART ? data : NULL);
    if (data != NULL) {
        zend_string_release(data);
    }
    return NULL;
}

/* --- life --- */

static zend_object *create(zend_class_entry *class_type) {
    connection *self = zend_object_alloc(sizeof *self, class_type);
    memset(self, 0, XtOffsetOf(connection, std));
    self->fd = -1;
    self->key = -1;
    ZVAL_NULL(&self->current);
    zend_object_std_init(&self->std, class_type);
    object_properties_init(&self->std, class_type);
    self->std.handlers = &handlers;
    return &self->std;
}

/* Closes one that the script has not closed. */
static void finish(connection *self, bool failed) {
    if (self->fd >= 0 && !shim.script_child) {
        uint16_t code = failed ? FAILED : NORMAL;
        const char *reason = failed ? "the application failed" : "";
        send_close(self, code, reason, strlen(reason), async_after(CLOSING));
        set_end(self, code, reason, strlen(reason));
    }
    drop(self);
}

/* The last reference goes; code that waits is still allowed here. */
static void destroy(zend_object *object) {
    const zend_object *exception = EG(exception);
    finish(of(object), exception != NULL && !zend_is_unwind_exit(exception) && !zend_is_graceful_exit(exception));
}

static void release(zend_object *object) {
    connection *self = of(object);
    drop(self);
    stream_input_free(&self->input);
    if (self->data != NULL) {
        zend_string_release(self->data);
    }
    zval_ptr_dtor(&self->current);
    zend_object_std_dtor(object);
}

/* The request ends, and so do its connections. */
static void end_all(const async_request *request, bool failed) {
    for (connection *self = newest; self != NULL;) {
        if (self->request != request) {
            self = self->older;
            continue;
        }
        GC_ADDREF(&self->std);
        finish(self, failed);
        OBJ_RELEASE(&self->std);
        /* Others may have come and gone during the wait. */
        self = newest;
    }
}

void websocket_connections_leave(void) {
    for (connection *self = newest; self != NULL; self = self->older) {
        leave(self);
    }
}

/* --- methods --- */

PHP_METHOD(Howdah_WebSocket, accept) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (!coroutine_available) {
        zend_throw_error(NULL, "WebSocket::accept() needs async mode");
        RETURN_THROWS();
    }
    async_request *request = coroutine_current != NULL ? coroutine_current->request : NULL;
    int fd = request != NULL && shim.request != NULL && !shim.response_ended && !shim.script_child
                 ? howdah_rs_take_stream()
                 : -1;
    if (fd < 0) {
        zend_throw_error(NULL,
                         "This request is not the \"open\" event of a WebSocket connection, or has been answered");
        RETURN_THROWS();
    }
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (moved >= 0) {
        close(fd);
        fd = moved;
    }
    async_fd_new(fd, true);
    object_init_ex(return_value, class_entry);
    connection *self = of(Z_OBJ_P(return_value));
    self->fd = fd;
    self->request = request;
    self->older = newest;
    if (newest != NULL) {
        newest->newer = self;
    }
    newest = self;
    size_t length;
    const char *id = websocket_variable("HOWDAH_WEBSOCKET_ID", &length);
    zend_update_property_stringl(class_entry, &self->std, ZEND_STRL("id"), id != NULL ? id : "", length);
    write_part(self, HOWDAH_PART_KIND_ACCEPT, "", 0, async_after(CLOSING));
    shim_reset_session_close();
    php_output_end_all();
    php_header();
    shim_response_end(false);
    async_request_stays(request);
    if (async_leaving()) {
        leave(self);
    }
}

PHP_METHOD(Howdah_WebSocketConnection, __construct) {
    ZEND_PARSE_PARAMETERS_NONE();
}

PHP_METHOD(Howdah_WebSocketConnection, receive) {
    double seconds = 0;
    bool forever = true;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(seconds, forever)
    ZEND_PARSE_PARAMETERS_END();
    zend_string *message = receive(of(Z_OBJ_P(ZEND_THIS)), async_until(seconds, forever));
    if (message == NULL) {
        RETURN_NULL();
    }
    RETURN_STR(message);
}

PHP_METHOD(Howdah_WebSocketConnection, send) {
    zend_string *data;
    bool binary = false;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_STR(data)
    Z_PARAM_OPTIONAL
    Z_PARAM_BOOL(binary)
    ZEND_PARSE_PARAMETERS_END();
    if (ZSTR_LEN(data) > MAX_MESSAGE) {
        zend_argument_value_error(1, "must be at most 1 MiB long");
        RETURN_THROWS();
    }
    yield_periodically();
    howdah_part_kind kind = binary ? HOWDAH_PART_KIND_BINARY : HOWDAH_PART_KIND_TEXT;
    written result = send_part(of(Z_OBJ_P(ZEND_THIS)), kind, ZSTR_VAL(data), ZSTR_LEN(data), COROUTINE_FOREVER);
    report_unsent(result);
    RETURN_BOOL(result == WRITTEN);
}

PHP_METHOD(Howdah_WebSocketConnection, close) {
    zend_string *reason = zend_empty_string;
    zend_long code = NORMAL;
    ZEND_PARSE_PARAMETERS_START(0, 2)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(code)
    Z_PARAM_STR(reason)
    ZEND_PARSE_PARAMETERS_END();
    if (!websocket_close_is_valid(code, reason, 1)) {
        RETURN_THROWS();
    }
    connection *self = of(Z_OBJ_P(ZEND_THIS));
    if (self->fd < 0) {
        return;
    }
    report_unsent(send_close(self, (uint16_t)code, ZSTR_VAL(reason), ZSTR_LEN(reason), COROUTINE_FOREVER));
    if (self->fd >= 0 && EG(exception) == NULL) {
        set_end(self, code, ZSTR_VAL(reason), ZSTR_LEN(reason));
        drop(self);
    }
}

static void receive_next(connection *self) {
    zval_ptr_dtor(&self->current);
    ZVAL_NULL(&self->current);
    zend_string *message = receive(self, COROUTINE_FOREVER);
    if (message != NULL) {
        ZVAL_STR(&self->current, message);
        self->key++;
    }
}

PHP_METHOD(Howdah_WebSocketConnection, rewind) {
    ZEND_PARSE_PARAMETERS_NONE();
    receive_next(of(Z_OBJ_P(ZEND_THIS)));
}

PHP_METHOD(Howdah_WebSocketConnection, next) {
    ZEND_PARSE_PARAMETERS_NONE();
    receive_next(of(Z_OBJ_P(ZEND_THIS)));
}

PHP_METHOD(Howdah_WebSocketConnection, valid) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_BOOL(Z_TYPE(of(Z_OBJ_P(ZEND_THIS))->current) == IS_STRING);
}

PHP_METHOD(Howdah_WebSocketConnection, current) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_COPY(&of(Z_OBJ_P(ZEND_THIS))->current);
}

PHP_METHOD(Howdah_WebSocketConnection, key) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(of(Z_OBJ_P(ZEND_THIS))->key);
}

void websocket_connection_class_startup(zend_class_entry *registered) {
    class_entry = registered;
    class_entry->create_object = create;
    async_request_ends_connections(end_all);
    handlers = *zend_get_std_object_handlers();
    handlers.offset = XtOffsetOf(connection, std);
    handlers.clone_obj = NULL;
    handlers.dtor_obj = destroy;
    handlers.free_obj = release;
}
