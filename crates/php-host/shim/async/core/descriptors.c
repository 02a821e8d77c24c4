/* Coroutines that wait for descriptors, and the registration of those with epoll.
 *
 * An ordinary descriptor is registered for one event, again for each wait: libraries close descriptors and reuse the
 * number for another file without our knowledge, and such a registration cannot outlive its file. It costs one system
 * call, the same as the poll() that it replaces.
 *
 * For a stream socket that a driver has connected, or that came connected for a WebSocket, every change is known: its
 * number can only get another file after close(), which is hooked, and only connect() starts such a socket again. It
 * stays registered, edge-triggered, and a wait for an answer costs no system call if no event can have been missed: the
 * last recv() took all data, no event has arrived since, and something has been sent. */
#include "async/core/descriptors.h"

#include "shim.h"
#include "async/core/coroutine.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

/* Events of a wait for an answer alone. */
#define ANSWER ((uint32_t)EPOLLIN | (uint32_t)EPOLLRDHUP)

enum {
    CONNECTED = 1,  /* a stream socket for which connect() was called */
    REGISTERED = 2, /* for ANSWER, edge-triggered */
    EMPTY = 4,      /* no data has arrived since the last recv() emptied it */
    SENT = 8,       /* something was sent since the last wait */
};

typedef struct descriptor {
    async_watch *first;
    uint8_t state;
} descriptor;

static int epoll_fd = -1;
/* Indexed by descriptor number. */
static descriptor *descriptors;
static size_t descriptors_size;

static void make_room_for(int fd) {
    if ((size_t)fd < descriptors_size) {
        return;
    }
    size_t size = descriptors_size == 0 ? 256 : descriptors_size;
    while (size <= (size_t)fd) {
        size *= 2;
    }
    descriptors = perealloc(descriptors, size * sizeof *descriptors, 1);
    memset(descriptors + descriptors_size, 0, (size - descriptors_size) * sizeof *descriptors);
    descriptors_size = size;
}

static descriptor *find_descriptor(int fd) {
    return fd >= 0 && (size_t)fd < descriptors_size ? &descriptors[fd] : NULL;
}

static uint32_t epoll_events(short events) {
    return (events & POLLIN ? (uint32_t)EPOLLIN | EPOLLRDHUP : 0) | (events & POLLOUT ? (uint32_t)EPOLLOUT : 0) |
           (events & POLLPRI ? (uint32_t)EPOLLPRI : 0);
}

static bool set(int fd, uint32_t events) {
    struct epoll_event event = {.events = events, .data.u32 = (uint32_t)fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0) {
        return true;
    }
    return errno == ENOENT && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Registers a descriptor for all of its waiters. False when it cannot be watched. */
static bool arm(int fd) {
    descriptor *self = &descriptors[fd];
    uint32_t events = 0;
    for (const async_watch *watch = self->first; watch != NULL; watch = watch->next) {
        events |= epoll_events(watch->events);
    }
    if ((self->state & CONNECTED) == 0 || events != ANSWER) {
        self->state &= (uint8_t)~REGISTERED;
        return set(fd, events | EPOLLONESHOT);
    }
    bool asked = (self->state & (REGISTERED | EMPTY | SENT)) == (REGISTERED | EMPTY | SENT);
    self->state &= (uint8_t)~SENT;
    if (!asked) {
        if (!set(fd, ANSWER | EPOLLET)) {
            return false;
        }
        self->state |= REGISTERED;
    }
    return true;
}

static void unlink_watch(async_watch *watch) {
    for (async_watch **at = &descriptors[watch->fd].first; *at != NULL; at = &(*at)->next) {
        if (*at == watch) {
            *at = watch->next;
            return;
        }
    }
}

static void unlink_watches(async_watch *watches, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        unlink_watch(&watches[i]);
    }
}

int async_wait_fds(async_watch *watches, unsigned count, uint64_t until, const char *what) {
    for (unsigned i = 0; i < count; i++) {
        async_watch *watch = &watches[i];
        if (watch->fd < 0) {
            unlink_watches(watches, i);
            return -1;
        }
        make_room_for(watch->fd);
        watch->owner = coroutine_current;
        watch->revents = 0;
        watch->next = descriptors[watch->fd].first;
        descriptors[watch->fd].first = watch;
        if (!arm(watch->fd)) {
            unlink_watches(watches, i + 1);
            return -1;
        }
    }
    coroutine_woken woken = coroutine_wait(until, what);
    unlink_watches(watches, count);
    return (int)woken;
}

int async_wait_fd(int fd, short events, uint64_t until, const char *what) {
    async_watch watch = {.fd = fd, .events = events};
    return async_wait_fds(&watch, 1, until, what);
}

/* Wakes waiters whose events occurred and registers the others again, as one event ends a registration. */
void async_deliver(int fd, uint32_t events) {
    descriptor *self = find_descriptor(fd);
    if (self == NULL) {
        return;
    }
    self->state &= (uint8_t)~EMPTY;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        /* The peer's end is reported only once, even if a later wait needs it. */
        self->state &= (uint8_t)~CONNECTED;
    }
    bool left = false;
    for (async_watch *watch = self->first; watch != NULL; watch = watch->next) {
        short seen = 0;
        if (events & (EPOLLIN | EPOLLRDHUP)) {
            seen |= POLLIN;
        }
        if (events & EPOLLOUT) {
            seen |= POLLOUT;
        }
        if (events & EPOLLPRI) {
            seen |= POLLPRI;
        }
        seen &= watch->events;
        seen |= (short)((events & EPOLLERR ? POLLERR : 0) | (events & EPOLLHUP ? POLLHUP : 0));
        if (seen != 0) {
            watch->revents |= seen;
            coroutine_wake(watch->owner, COROUTINE_WOKEN);
        } else {
            left = true;
        }
    }
    if (left) {
        arm(fd);
    }
}

const coroutine *async_fd_taken(int fd, short events) {
    const descriptor *self = find_descriptor(fd);
    if (self == NULL) {
        return NULL;
    }
    for (const async_watch *watch = self->first; watch != NULL; watch = watch->next) {
        if ((watch->events & events) != 0 && watch->owner != coroutine_current && !watch->only_looks) {
            return watch->owner;
        }
    }
    return NULL;
}

void async_fd_closing(int fd) {
    descriptor *self = find_descriptor(fd);
    if (self == NULL) {
        return;
    }
    if ((self->state & REGISTERED) != 0) {
        /* A process that the script started may still have the file open, which would keep reporting events. */
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    }
    self->state = 0;
    for (async_watch *watch = self->first; watch != NULL; watch = watch->next) {
        watch->revents |= POLLNVAL;
        coroutine_wake(watch->owner, COROUTINE_WOKEN);
    }
}

void async_fd_new(int fd, bool connected) {
    if (fd >= 0) {
        make_room_for(fd);
        descriptors[fd].state = connected ? CONNECTED : 0;
    }
}

void async_fd_sent(int fd) {
    descriptor *self = find_descriptor(fd);
    if (self != NULL) {
        self->state |= SENT;
    }
}

void async_fd_emptied(int fd) {
    descriptor *self = find_descriptor(fd);
    if (self != NULL) {
        self->state |= EMPTY;
    }
}

bool async_fd_is_empty(int fd) {
    const descriptor *self = find_descriptor(fd);
    return self != NULL && (self->state & EMPTY) != 0;
}

void async_descriptors_startup(int epoll) {
    epoll_fd = epoll;
}

void async_descriptors_shutdown(void) {
    pefree(descriptors, 1);
    descriptors = NULL;
    descriptors_size = 0;
}
