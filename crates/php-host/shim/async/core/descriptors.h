/* Waits of coroutines for descriptors. */
#ifndef HOWDAH_ASYNC_CORE_DESCRIPTORS_H
#define HOWDAH_ASYNC_CORE_DESCRIPTORS_H

#include "shim.h"
#include "async/core/coroutine.h"

#include <poll.h>

/* One descriptor that a coroutine waits for; on that coroutine's stack. */
typedef struct async_watch {
    int fd;
    short events; /* POLLIN, POLLOUT, POLLPRI */
    short revents;
    /* From select(): such a waiter does not claim the descriptor. */
    bool only_looks;
    coroutine *owner;
    struct async_watch *next;
} async_watch;

/* Parks the current coroutine until one of the descriptors is ready. COROUTINE_WOKEN: at least one has revents. -1: a
 * descriptor cannot be watched (a file, a closed one), so the caller must make the system call itself. */
int async_wait_fds(async_watch *watches, unsigned count, uint64_t until, const char *what);
/* Waits for one descriptor; returns COROUTINE_* or -1. */
int async_wait_fd(int fd, short events, uint64_t until, const char *what);
/* Returns another coroutine that waits for the same events of this descriptor, or NULL. */
const coroutine *async_fd_taken(int fd, short events);
/* Called before a descriptor is closed: wakes its waiters. */
void async_fd_closing(int fd);
/* Called when a descriptor number is reused: `connected` for a stream socket that is being connected, or was from the
 * beginning. */
void async_fd_new(int fd, bool connected);
/* Called when data was sent; when a read has taken all received data. */
void async_fd_sent(int fd);
void async_fd_emptied(int fd);
/* True if no data has arrived since then, as far as events were taken from epoll. */
bool async_fd_is_empty(int fd);
/* Handles events of a descriptor, as reported by epoll. */
void async_deliver(int fd, uint32_t events);
void async_descriptors_startup(int epoll);
void async_descriptors_shutdown(void);

#endif
