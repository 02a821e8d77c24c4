/* Waits for descriptors. */
#ifndef HOWDAH_ASYNC_CORE_DESCRIPTORS_H
#define HOWDAH_ASYNC_CORE_DESCRIPTORS_H

#include "shim.h"
#include "async/core/coroutine.h"

#include <poll.h>

/* One descriptor that a coroutine waits for; lies on its stack. */
typedef struct async_watch {
    int fd;
    short events; /* POLLIN, POLLOUT, POLLPRI */
    short revents;
    /* By select(): such a waiter does not claim the descriptor. */
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
/* A descriptor is about to be closed: its waiters go on. */
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

#endif
