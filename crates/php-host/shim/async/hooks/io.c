/* Blocking calls of libc on descriptors and clocks, for coroutines. The pattern: try without blocking; if that would
 * have blocked and the descriptor is a blocking one, wait in the scheduler and try again. A descriptor that the caller
 * made non-blocking gets no special treatment.
 *
 * When a wait for a descriptor is cancelled, the call fails with ECANCELED, so that the library unwinds as from any
 * other error. A cancelled sleep ends early, as by a signal. */
#include "async/hooks/io.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/descriptors.h"
#include "async/core/timers.h"
#include "async/hooks/file_locks.h"
#include "async/hooks/waits.h"
#include "async/tools/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
/* Number of watches that fit on the stack. */
#define FEW 16

/* --- poll, select --- */

static uint64_t until_milliseconds(int timeout) {
    return timeout < 0 ? COROUTINE_FOREVER : async_after((uint64_t)timeout * MILLISECOND);
}

static int cancelled(void) {
    errno = ECANCELED;
    return -1;
}

/* The usual wait of drivers: one descriptor, one direction. The kernel need not be asked first; it answers at the next
 * turn of the scheduler. */
static int poll_one(struct pollfd *fd, int timeout) {
    const coroutine *other = async_fd_taken(fd->fd, fd->events);
    if (other != NULL) {
        async_stream_taken(other);
        errno = EBUSY;
        return -1;
    }
    async_watch watch = {.fd = fd->fd, .events = fd->events};
    switch (async_wait_fds(&watch, 1, until_milliseconds(timeout), "poll")) {
    case COROUTINE_WOKEN:
        fd->revents = watch.revents;
        return watch.revents != 0;
    case COROUTINE_TIMED_OUT:
        fd->revents = 0;
        return 0;
    case COROUTINE_CANCELLED:
        return cancelled();
    default:
        return poll(fd, 1, timeout);
    }
}

static int poll_many(struct pollfd *fds, nfds_t count, int timeout) {
    async_watch few[FEW];
    async_watch *watches = count <= FEW ? few : safe_pemalloc(count, sizeof *watches, 0, 1);
    uint64_t until = until_milliseconds(timeout);
    int ready;
    do {
        unsigned used = 0;
        for (nfds_t i = 0; i < count; i++) {
            if (fds[i].fd >= 0) {
                watches[used++] = (async_watch){.fd = fds[i].fd, .events = fds[i].events};
            }
        }
        int woken = async_wait_fds(watches, used, until, "poll");
        if (woken == COROUTINE_CANCELLED) {
            ready = cancelled();
            break;
        }
        ready = poll(fds, count, woken == -1 ? timeout : 0);
        if (woken != COROUTINE_WOKEN) {
            break;
        }
    } while (ready == 0);
    if (watches != few) {
        pefree(watches, 1);
    }
    return ready;
}

int async_poll(struct pollfd *fds, nfds_t count, int timeout) {
    if (timeout == 0 || !async_may_sleep()) {
        return poll(fds, count, timeout);
    }
    if (count == 1 && fds->fd >= 0) {
        return poll_one(fds, timeout);
    }
    int ready = poll(fds, count, 0);
    return ready != 0 ? ready : poll_many(fds, count, timeout);
}

static uint64_t until_timeval(const struct timeval *timeout) {
    if (timeout == NULL) {
        return COROUTINE_FOREVER;
    }
    return async_after((uint64_t)timeout->tv_sec * SECOND + (uint64_t)timeout->tv_usec * 1000);
}

int async_select(int count, fd_set *readable, fd_set *writable, fd_set *exceptional, struct timeval *timeout) {
    bool no_time = timeout != NULL && timeout->tv_sec == 0 && timeout->tv_usec == 0;
    if (no_time || count > FD_SETSIZE || !async_may_sleep()) {
        return select(count, readable, writable, exceptional, timeout);
    }
    fd_set wanted[3];
    fd_set *sets[3] = {readable, writable, exceptional};
    static const short events[3] = {POLLIN, POLLOUT, POLLPRI};
    async_watch *watches = safe_pemalloc((size_t)count + 1, sizeof *watches, 0, 1);
    unsigned used = 0;
    for (int fd = 0; fd < count; fd++) {
        short all = 0;
        for (int i = 0; i < 3; i++) {
            all |= sets[i] != NULL && FD_ISSET(fd, sets[i]) ? events[i] : 0;
        }
        if (all != 0) {
            watches[used++] = (async_watch){.fd = fd, .events = all, .only_looks = true};
        }
    }
    for (int i = 0; i < 3; i++) {
        if (sets[i] != NULL) {
            wanted[i] = *sets[i];
        }
    }
    uint64_t until = until_timeval(timeout);
    int ready;
    for (;;) {
        struct timeval now = {0, 0};
        ready = select(count, readable, writable, exceptional, &now);
        if (ready != 0) {
            break;
        }
        for (int i = 0; i < 3; i++) {
            if (sets[i] != NULL) {
                *sets[i] = wanted[i];
            }
        }
        int woken = async_wait_fds(watches, used, until, "select");
        if (woken == COROUTINE_WOKEN) {
            continue;
        }
        if (woken == COROUTINE_CANCELLED) {
            ready = cancelled();
        } else {
            ready = select(count, readable, writable, exceptional, woken == -1 ? timeout : &now);
        }
        break;
    }
    int error = errno;
    pefree(watches, 1);
    errno = error;
    return ready;
}

/* --- sockets --- */

static bool is_blocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

/* Called after a try that would have blocked: waits, with the socket's own timeout. False with errno set: give up. */
static bool wait_socket(int fd, short events, const char *what) {
    if (!is_blocking(fd)) {
        errno = EAGAIN;
        return false;
    }
    struct timeval limit = {0, 0};
    socklen_t length = sizeof limit;
    getsockopt(fd, SOL_SOCKET, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, &length);
    bool limited = limit.tv_sec != 0 || limit.tv_usec != 0;
    switch (async_wait_fd(fd, events, until_timeval(limited ? &limit : NULL), what)) {
    case COROUTINE_WOKEN:
        return true;
    case COROUTINE_CANCELLED:
        errno = ECANCELED;
        return false;
    default:
        errno = EAGAIN;
        return false;
    }
}

static bool would_block(ssize_t result) {
    return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Evaluates `attempt` without blocking until it would no longer block. */
#define RETRY(fd, events, what, original, attempt)                                                                     \
    do {                                                                                                               \
        if ((flags & MSG_DONTWAIT) != 0 || !async_may_wait()) {                                                        \
            return original;                                                                                           \
        }                                                                                                              \
        ssize_t result;                                                                                                \
        do {                                                                                                           \
            result = attempt;                                                                                          \
        } while (would_block(result) && wait_socket(fd, events, what));                                                \
        return result;                                                                                                 \
    } while (0)

static ssize_t receive(int fd, void *buffer, size_t size, int flags) {
    ssize_t result = recv(fd, buffer, size, flags | MSG_DONTWAIT);
    if (result < (ssize_t)size && (flags & MSG_PEEK) == 0 && (result > 0 || would_block(result))) {
        async_fd_emptied(fd);
    }
    return result;
}

/* Drivers that have already waited for an answer pass MSG_DONTWAIT. */
ssize_t async_recv(int fd, void *buffer, size_t size, int flags) {
    if ((flags & MSG_DONTWAIT) != 0 && async_may_wait()) {
        return receive(fd, buffer, size, flags);
    }
    RETRY(fd, POLLIN, "recv", recv(fd, buffer, size, flags), receive(fd, buffer, size, flags));
}

ssize_t async_recvfrom(int fd, void *buffer, size_t size, int flags, struct sockaddr *from, socklen_t *from_len) {
    RETRY(fd, POLLIN, "recvfrom", recvfrom(fd, buffer, size, flags, from, from_len),
          recvfrom(fd, buffer, size, flags | MSG_DONTWAIT, from, from_len));
}

ssize_t async_recvmsg(int fd, struct msghdr *message, int flags) {
    RETRY(fd, POLLIN, "recvmsg", recvmsg(fd, message, flags), recvmsg(fd, message, flags | MSG_DONTWAIT));
}

ssize_t async_send(int fd, const void *data, size_t size, int flags) {
    if (async_may_wait()) {
        async_fd_sent(fd);
    }
    RETRY(fd, POLLOUT, "send", send(fd, data, size, flags), send(fd, data, size, flags | MSG_DONTWAIT));
}

ssize_t async_sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t to_len) {
    RETRY(fd, POLLOUT, "sendto", sendto(fd, data, size, flags, to, to_len),
          sendto(fd, data, size, flags | MSG_DONTWAIT, to, to_len));
}

ssize_t async_sendmsg(int fd, const struct msghdr *message, int flags) {
    RETRY(fd, POLLOUT, "sendmsg", sendmsg(fd, message, flags), sendmsg(fd, message, flags | MSG_DONTWAIT));
}

/* Events of a datagram socket do not come in sequence. A descriptor that is not a socket has no type. */
static bool is_stream(int fd) {
    int type = 0;
    socklen_t length = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

int async_connect(int fd, const struct sockaddr *address, socklen_t length) {
    if (async_may_wait()) {
        async_fd_new(fd, is_stream(fd));
    }
    int flags = async_may_sleep() ? fcntl(fd, F_GETFL) : -1;
    if (flags < 0 || (flags & O_NONBLOCK) != 0) {
        return connect(fd, address, length);
    }
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    int result = connect(fd, address, length);
    int error = errno;
    fcntl(fd, F_SETFL, flags);
    if (result == 0 || error != EINPROGRESS) {
        errno = error;
        /* A local socket with a full queue has no event for its end. */
        return result < 0 && error == EAGAIN ? connect(fd, address, length) : result;
    }
    if (!wait_socket(fd, POLLOUT, "connect")) {
        if (errno == EAGAIN) {
            errno = EINPROGRESS;
        }
        return -1;
    }
    socklen_t error_len = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
    errno = error;
    return error == 0 ? 0 : -1;
}

int async_accept(int fd, struct sockaddr *address, socklen_t *length) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (async_may_wait()) {
        while (poll(&ready, 1, 0) == 0 && is_blocking(fd)) {
            if (!wait_socket(fd, POLLIN, "accept")) {
                return -1;
            }
        }
    }
    int accepted = accept(fd, address, length);
    if (async_may_wait()) {
        async_fd_new(accepted, false);
    }
    return accepted;
}

/* --- files, pipes and other descriptors --- */

ssize_t async_read(int fd, void *buffer, size_t size) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (async_may_wait()) {
        while (poll(&ready, 1, 0) == 0 && is_blocking(fd)) {
            if (async_wait_fd(fd, POLLIN, COROUTINE_FOREVER, "read") == COROUTINE_CANCELLED) {
                return cancelled();
            }
        }
    }
    return read(fd, buffer, size);
}

/* A pipe with some room still blocks a writer that writes more. */
static ssize_t write_piece(int fd, const void *data, size_t size) {
    struct stat status;
    if (size <= PIPE_BUF || fstat(fd, &status) != 0) {
        return write(fd, data, size);
    }
    if (S_ISSOCK(status.st_mode)) {
        return async_send(fd, data, size, 0);
    }
    return write(fd, data, S_ISFIFO(status.st_mode) ? PIPE_BUF : size);
}

ssize_t async_write(int fd, const void *data, size_t size) {
    if (!async_may_wait()) {
        return write(fd, data, size);
    }
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    while (poll(&ready, 1, 0) == 0) {
        if (!is_blocking(fd)) {
            return write(fd, data, size);
        }
        if (async_wait_fd(fd, POLLOUT, COROUTINE_FOREVER, "write") == COROUTINE_CANCELLED) {
            return cancelled();
        }
    }
    return is_blocking(fd) ? write_piece(fd, data, size) : write(fd, data, size);
}

int async_close(int fd) {
    if (async_owns_descriptors()) {
        async_fd_closing(fd);
    }
    async_forget_lock(fd);
    int result = close(fd);
    if (async_may_wait()) {
        int error = errno;
        async_lock_released();
        errno = error;
    }
    return result;
}

/* --- clocks --- */

/* Returns the nanoseconds that were left when the sleep was cancelled, else 0. */
static uint64_t sleep_for(uint64_t nanoseconds) {
    uint64_t until = async_after(nanoseconds);
    if (coroutine_wait(until, "sleep") != COROUTINE_CANCELLED) {
        return 0;
    }
    uint64_t now = async_now();
    return until > now ? until - now : 0;
}

unsigned async_sleep(unsigned seconds) {
    if (!async_may_sleep()) {
        return sleep(seconds);
    }
    return (unsigned)((sleep_for(seconds * SECOND) + SECOND - 1) / SECOND);
}

int async_usleep(useconds_t microseconds) {
    if (!async_may_sleep()) {
        return usleep(microseconds);
    }
    if (sleep_for((uint64_t)microseconds * 1000) > 0) {
        errno = EINTR;
        return -1;
    }
    return 0;
}

int async_nanosleep(const struct timespec *time, struct timespec *left) {
    if (!async_may_sleep() || time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= (long)SECOND) {
        return nanosleep(time, left);
    }
    uint64_t remaining = sleep_for((uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec);
    if (remaining == 0) {
        return 0;
    }
    if (left != NULL) {
        left->tv_sec = (time_t)(remaining / SECOND);
        left->tv_nsec = (long)(remaining % SECOND);
    }
    errno = EINTR;
    return -1;
}
