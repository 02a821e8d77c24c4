/* Follows the traffic on the connections that the application opened at boot. Drivers talk to their servers through a
 * few functions of libc, which are replaced in their import tables (process/import_hooks.c). So it does not matter
 * which extension or PHP code implements a protocol, and nothing extra is sent for that.
 *
 * A request that ends while an answer is outstanding, or that has changed a session in a way that cannot be undone,
 * costs the worker: the next request must not get that connection. */
#include "snapshot/sessions/tap.h"

#include "shim.h"
#include "process/import_hooks.h"
#include "snapshot/engine/internal.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/pool_notes.h"
#include "snapshot/php/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_FD 1024

/* Time limit in milliseconds for a server to answer one of our own exchanges; the worker is replaced after it. */
#define EXCHANGE_TIMEOUT_MS 2000

static tap *taps[MAX_FD];
/* The taps of the snapshot. */
static tap *kept[SNAPSHOT_MAX_KEPT];
static size_t n_kept;
static tap_lasting *lasting;
static bool opening;
static int opened = -1;
/* Counts transfers, to order them. */
static uint64_t passes;

static tap *tap_of(int fd) {
    return fd >= 0 && fd < MAX_FD && !shim.script_child ? taps[fd] : NULL;
}

static tap *tap_made(int fd) {
    tap *t = calloc(1, sizeof *t);
    if (t == NULL) {
        snapshot_spoil("no memory to watch a connection");
        return NULL;
    }
    t->fd = fd;
    taps[fd] = t;
    return t;
}

/* --- protocols --- */

static uint32_t word(const char *data) {
    const unsigned char *bytes = (const unsigned char *)data;
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* MySQL's server speaks first; in the other protocols the client does. */
static tap_protocol protocol_of(bool sent, const char *data, size_t length) {
    if (sent && length >= 4 && data[0] == '*' && data[1] >= '1' && data[1] <= '9') {
        return TAP_REDIS;
    }
    if (sent && length >= 8 && word(data) == length) {
        uint32_t version = word(data + 4);
        return version >> 16 == 3 || (version >> 16 == 1234 && (version & 0xffff) >= 5679) ? TAP_PGSQL : TAP_OTHER;
    }
    if (!sent && length >= 4 && data[2] == 0 && data[3] == 0 && (length == 4 || data[4] == 10)) {
        return TAP_MYSQL;
    }
    return TAP_OTHER;
}

typedef void follower(tap *t, const char *data, size_t length);

static void record_traffic(tap *t, bool sent, const char *data, size_t length) {
    static follower *const followers[][2] = {
        [TAP_MYSQL] = {mysql_received, mysql_sent},
        [TAP_PGSQL] = {pgsql_received, pgsql_sent},
        [TAP_REDIS] = {redis_received, redis_sent},
    };
    if (t->gone) {
        return;
    }
    if (t->protocol == TAP_UNSEEN) {
        t->protocol = (uint8_t)protocol_of(sent, data, length);
    }
    t->used = t->used || snapshot_taken();
    t->asked_last = sent;
    t->at = ++passes;
    t->answers = t->answers || !sent;
    t->received += sent ? 0 : length;
    if (t->protocol != TAP_OTHER && !t->opaque) {
        followers[t->protocol][sent](t, data, length);
    }
}

static ssize_t noted(int fd, bool sent, const void *data, ssize_t result) {
    tap *t = tap_of(fd);
    if (t != NULL && result > 0) {
        int error = errno;
        record_traffic(t, sent, data, (size_t)result);
        errno = error;
    }
    return result;
}

static ssize_t noted_parts(int fd, bool sent, const struct iovec *parts, size_t count, ssize_t result) {
    ssize_t left = result;
    for (size_t i = 0; i < count && left > 0; i++) {
        ssize_t part = (ssize_t)parts[i].iov_len < left ? (ssize_t)parts[i].iov_len : left;
        noted(fd, sent, parts[i].iov_base, part);
        left -= part;
    }
    return result;
}

/* --- replacements of libc's functions --- */

static ssize_t tap_recv(int fd, void *buffer, size_t size, int flags) {
    ssize_t n = recv(fd, buffer, size, flags);
    return (flags & MSG_PEEK) != 0 ? n : noted(fd, false, buffer, n);
}

static ssize_t tap_recv_checked(int fd, void *buffer, size_t size, size_t most, int flags) {
    return tap_recv(fd, buffer, size <= most ? size : most, flags);
}

static ssize_t tap_recvfrom(int fd, void *buffer, size_t size, int flags, struct sockaddr *from, socklen_t *length) {
    ssize_t n = recvfrom(fd, buffer, size, flags, from, length);
    return (flags & MSG_PEEK) != 0 ? n : noted(fd, false, buffer, n);
}

static ssize_t tap_recvmsg(int fd, struct msghdr *message, int flags) {
    ssize_t n = recvmsg(fd, message, flags);
    return (flags & MSG_PEEK) != 0 ? n : noted_parts(fd, false, message->msg_iov, message->msg_iovlen, n);
}

static ssize_t tap_read(int fd, void *buffer, size_t size) {
    return noted(fd, false, buffer, read(fd, buffer, size));
}

static ssize_t tap_read_checked(int fd, void *buffer, size_t size, size_t most) {
    return tap_read(fd, buffer, size <= most ? size : most);
}

static ssize_t tap_readv(int fd, const struct iovec *parts, int count) {
    return noted_parts(fd, false, parts, (size_t)count, readv(fd, parts, count));
}

static ssize_t tap_sendv(int fd, const struct iovec *parts, int count) {
    return noted_parts(fd, true, parts, (size_t)count, writev(fd, parts, count));
}

static ssize_t tap_send_to(int fd, const void *data, size_t size, int flags) {
    return noted(fd, true, data, send(fd, data, size, flags));
}

static ssize_t tap_sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                          socklen_t length) {
    return noted(fd, true, data, sendto(fd, data, size, flags, to, length));
}

static ssize_t tap_sendmsg(int fd, const struct msghdr *message, int flags) {
    return noted_parts(fd, true, message->msg_iov, message->msg_iovlen, sendmsg(fd, message, flags));
}

static ssize_t tap_write(int fd, const void *data, size_t size) {
    return noted(fd, true, data, write(fd, data, size));
}

static void mark(int fd, const char *what) {
    tap *t = tap_of(fd);
    if (t != NULL && !t->gone && snapshot_taken()) {
        t->used = true;
        t->spoiled = t->spoiled != NULL ? t->spoiled : what;
    }
}

/* A new conversation begins, at boot. In a request, a descriptor of the boot may have been closed and its number
 * reused. */
static int tap_connect(int fd, const struct sockaddr *address, socklen_t length) {
    tap *t = tap_of(fd);
    opened = opening ? fd : opened;
    if (!shim.script_child && fd >= 0 && fd < MAX_FD) {
        if (!snapshot_taken()) {
            free(t);
            taps[fd] = NULL;
            tap_made(fd);
        } else if (opening && (t == NULL || t->gone)) {
            tap_made(fd);
        } else if (t != NULL && !t->gone) {
            mark(fd, "the script has connected its socket to something else");
        }
    }
    return connect(fd, address, length);
}

static int mark_accepted(int fd) {
    if (!shim.script_child && !snapshot_taken() && fd >= 0 && fd < MAX_FD) {
        free(taps[fd]);
        taps[fd] = NULL;
        tap_made(fd);
    }
    return fd;
}

static int tap_accept(int fd, struct sockaddr *address, socklen_t *length) {
    return mark_accepted(accept(fd, address, length));
}

static int tap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    return mark_accepted(accept4(fd, address, length, flags));
}

static int tap_close(int fd) {
    tap *t = tap_of(fd);
    opened = fd == opened ? -1 : opened;
    if (t != NULL && snapshot_taken()) {
        t->gone = true;
    } else if (t != NULL) {
        free(t);
        taps[fd] = NULL;
    }
    return close(fd);
}

static int tap_shutdown(int fd, int how) {
    mark(fd, "the script has closed it");
    return shutdown(fd, how);
}

static int tap_setsockopt(int fd, int level, int name, const void *value, socklen_t length) {
    mark(fd, "the script has changed options of its socket");
    return setsockopt(fd, level, name, value, length);
}

static const import_hook hooks[] = {
    {"recv", tap_recv},         {"__recv_chk", tap_recv_checked},
    {"recvfrom", tap_recvfrom}, {"recvmsg", tap_recvmsg},
    {"read", tap_read},         {"__read_chk", tap_read_checked},
    {"readv", tap_readv},       {"send", tap_send_to},
    {"sendto", tap_sendto},     {"sendmsg", tap_sendmsg},
    {"write", tap_write},       {"writev", tap_sendv},
    {"connect", tap_connect},   {"close", tap_close},
    {"shutdown", tap_shutdown}, {"setsockopt", tap_setsockopt},
    {"accept", tap_accept},     {"accept4", tap_accept4},
};

void shim_snapshot_tap_install(void) {
    import_hooks_install(hooks, sizeof hooks / sizeof *hooks);
}

/* --- connections that each worker opens --- */

void tap_opening_begin(void) {
    opening = true;
    opened = -1;
}

int tap_opening_end(void) {
    opening = false;
    return opened;
}

bool tap_is_opening(void) {
    return opening;
}

void tap_opened_by(int fd, uint32_t opener) {
    tap *t = tap_of(fd);
    if (t != NULL) {
        t->opener = opener;
    }
}

/* --- our own exchanges --- */

static int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool wait_for(int fd, short events, int64_t until) {
    int64_t left = until - milliseconds();
    struct pollfd polled = {.fd = fd, .events = events};
    return left > 0 && poll(&polled, 1, (int)left) > 0 && (polled.revents & (events | POLLHUP)) != 0;
}

static bool send_all(tap *t, const char *data, size_t length, int64_t until) {
    int fd = snapshot_boot_descriptor(t->fd);
    t->own = true;
    while (length > 0) {
        ssize_t n = send(fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR) && wait_for(fd, POLLOUT, until)) {
            continue;
        }
        if (n <= 0) {
            t->own = false;
            return false;
        }
        const bool gone = t->gone;
        t->gone = false;
        record_traffic(t, true, data, (size_t)n);
        t->gone = gone;
        data += n;
        length -= (size_t)n;
    }
    t->own = false;
    return true;
}

bool tap_exchange(tap *t, const void *data, size_t length, bool (*answered)(const tap *t)) {
    const int64_t until = milliseconds() + EXCHANGE_TIMEOUT_MS;
    const int fd = snapshot_boot_descriptor(t->fd);
    if (!send_all(t, data, length, until)) {
        return false;
    }
    const bool gone = t->gone;
    t->own = true;
    t->gone = false;
    bool good = true;
    while (good && !answered(t)) {
        char buffer[8192];
        ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n > 0) {
            record_traffic(t, false, buffer, (size_t)n);
        } else {
            good = n < 0 && (errno == EAGAIN || errno == EINTR) && wait_for(fd, POLLIN, until);
        }
        good = good && !t->opaque && t->spoiled == NULL;
    }
    t->own = false;
    t->gone = gone;
    return good && !t->failed;
}

/* --- at the snapshot and after each request --- */

typedef struct protocol {
    const char *name;
    bool (*idle)(const tap *t);
    const char *(*boot)(tap *t);
    const char *(*settle)(tap *t);
    bool (*renew)(tap *t);
} protocol;

static const protocol protocols[] = {
    [TAP_MYSQL] = {"MySQL", mysql_idle, mysql_boot, mysql_settle, mysql_renew},
    [TAP_PGSQL] = {"PostgreSQL", pgsql_idle, pgsql_boot, pgsql_settle, pgsql_renew},
    [TAP_REDIS] = {"Redis", redis_idle, redis_boot, redis_settle, redis_renew},
};

static bool is_followed(const tap *t) {
    return t->protocol != TAP_UNSEEN && t->protocol != TAP_OTHER && !t->opaque;
}

static const char *name_of(const tap *t) {
    return t->protocol == TAP_UNSEEN || t->protocol == TAP_OTHER ? "a server" : protocols[t->protocol].name;
}

static bool listens(int fd) {
    int listening = 0;
    socklen_t size = sizeof listening;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening;
}

static int socket_type(int fd) {
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 ? type : -1;
}

static bool is_pipe(int fd) {
    struct stat about;
    return fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
}

/* Returns the tap of a descriptor that the boot leaves open, if data can be transferred on it. */
static tap *tap_kept(int fd) {
    const int type = socket_type(fd);
    const bool pipe = type < 0 && is_pipe(fd);
    if (!snapshot_is_boot_descriptor(fd) || (type < 0 && !pipe) || (type >= 0 && listens(fd))) {
        free(taps[fd]);
        taps[fd] = NULL;
        return NULL;
    }
    tap *t = taps[fd] != NULL ? taps[fd] : tap_made(fd);
    if (t != NULL) {
        t->pipe = pipe;
        t->datagrams = type == SOCK_DGRAM;
        if (pipe) {
            t->protocol = TAP_OTHER;
            t->answers = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY;
        }
    }
    return t;
}

/* True if the kernel has received more on this connection than the tap has seen: another library uses it, with its own
 * TLS (mbedTLS, NSS) or a protocol whose session a request would leave to the next. A peer's end of the stream counts
 * as a byte. */
static bool is_unobserved(const tap *t) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    return getsockopt(t->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           size >= offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received &&
           info.tcpi_bytes_received > t->received + 1;
}

/* Returns the reason why the snapshot cannot be taken with this connection, or NULL. */
static const char *snapshot_refusal(tap *t) {
    if (is_unobserved(t)) {
        return "its library cannot be observed (own encryption or protocol); open it in each "
               "request instead";
    }
    if (!is_followed(t)) {
        return NULL;
    }
    const protocol *p = &protocols[t->protocol];
    if (t->spoiled != NULL) {
        return t->spoiled;
    }
    return p->idle(t) ? p->boot(t) : "a response is outstanding";
}

const char *shim_snapshot_tap_boot(void) {
    static char why[320];
    /* Reaches libraries that were loaded at boot. */
    shim_snapshot_tap_install();
    for (int fd = 0; fd < MAX_FD && n_kept < SNAPSHOT_MAX_KEPT; fd++) {
        tap *t = tap_kept(fd);
        if (t == NULL) {
            continue;
        }
        const char *trouble = snapshot_refusal(t);
        if (trouble != NULL) {
            char peer[120];
            const char *name = name_of(t);
            if (!is_followed(t) && shim_snapshot_name_peer(t->fd, peer, sizeof peer)) {
                name = peer;
            }
            (snprintf)(why, sizeof why, "a connection to %s is open: %s", name, trouble);
            return why;
        }
        if (lasting == NULL) {
            lasting = snapshot_lasting_memory(SNAPSHOT_MAX_KEPT * sizeof *lasting);
        }
        t->lasting = lasting != NULL ? &lasting[n_kept] : NULL;
        t->session.proven = lasting != NULL ? &lasting[n_kept].proven : NULL;
        t->renewable = t->lasting != NULL && t->opener != 0 && is_followed(t) && protocols[t->protocol].renew(t);
        t->used = t->asked_last = false;
        kept[n_kept++] = t;
    }
    return NULL;
}

tap *tap_of_snapshot(size_t n) {
    return n < n_kept ? kept[n] : NULL;
}

bool tap_is_renewable(const tap *t) {
    if (!t->renewable || t->protocol != TAP_PGSQL) {
        return t->renewable;
    }
    tap_lasting *l = t->lasting;
    if (l->n_places == 0) {
        l->n_places = snapshot_find(t->pgsql.backend, sizeof t->pgsql.backend, l->places, TAP_PLACES);
    }
    /* The driver's, and the tap's own. */
    return l->n_places > 1 && l->n_places < TAP_PLACES;
}

bool tap_opened_instead(tap *t, int fd) {
    const tap *new = tap_of(fd);
    if (new == NULL || new->protocol != t->protocol || new->opaque) {
        return false;
    }
    if (t->protocol == TAP_PGSQL) {
        memcpy(t->lasting->backend, new->pgsql.backend, sizeof new->pgsql.backend);
    }
    return snapshot_replace_boot_descriptor(t->fd, fd);
}

bool tap_renew(tap *t) {
    const tap_lasting *l = t->lasting;
    for (size_t i = 0; i < l->n_places; i++) {
        if (!snapshot_change(l->places[i], l->backend, sizeof l->backend)) {
            return false;
        }
    }
    return protocols[t->protocol].renew(t);
}

/* A pipe has one direction: data written to one may be answered on another. */
static bool pipes_await_answer(void) {
    uint64_t written = 0, read = 0;
    bool answers = false;
    for (size_t i = 0; i < n_kept; i++) {
        const tap *t = kept[i];
        if (t->pipe) {
            answers = answers || t->answers;
            uint64_t *last = t->asked_last ? &written : &read;
            *last = t->used && t->at > *last ? t->at : *last;
        }
    }
    return answers && written > read;
}

/* For an unknown protocol: the last request must have been answered. A socket that keeps message boundaries and never
 * answers is write-only; for others nothing is known. */
static bool awaits_answer(const tap *t) {
    return t->pipe ? pipes_await_answer() : t->asked_last && !(t->datagrams && !t->answers);
}

static const char *unrestorable_reason(tap *t, bool cut_off) {
    static char why[200];
    const char *trouble = t->spoiled;
    if (trouble == NULL && t->opaque) {
        trouble = "traffic that cannot be followed (compressed, or an unknown message)";
    }
    if (trouble != NULL) {
        (snprintf)(why, sizeof why, "a connection opened at boot (%s) cannot be reused: %s", name_of(t), trouble);
        return why;
    }
    bool outstanding =
        is_followed(t) ? !protocols[t->protocol].idle(t) : awaits_answer(t) || (cut_off && !t->datagrams);
    if (outstanding) {
        (snprintf)(why, sizeof why, "a response is outstanding on a connection opened at boot (%s)", name_of(t));
        shim_snapshot_advise(TAP_ADVICE_ANSWER, NULL);
        return why;
    }
    trouble = is_followed(t) ? protocols[t->protocol].settle(t) : NULL;
    if (trouble != NULL) {
        (snprintf)(why, sizeof why, "a request has left behind, on a connection opened at boot (%s), %s", name_of(t),
                   trouble);
        shim_snapshot_advise(TAP_ADVICE_REPLACED, trouble);
        return why;
    }
    return NULL;
}

const char *shim_snapshot_tap_settle(bool cut_off) {
    for (size_t i = 0; i < n_kept; i++) {
        const char *trouble = kept[i]->used ? unrestorable_reason(kept[i], cut_off) : NULL;
        if (trouble != NULL) {
            return trouble;
        }
    }
    return NULL;
}

bool shim_snapshot_has_connections(void) {
    return n_kept > 0;
}
