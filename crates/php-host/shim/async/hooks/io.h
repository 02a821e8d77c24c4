/* Replaces libc's calls on descriptors and its sleeps. See hooks.h. */
#ifndef HOWDAH_ASYNC_HOOKS_IO_H
#define HOWDAH_ASYNC_HOOKS_IO_H

#include "shim.h"

#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

int async_poll(struct pollfd *fds, nfds_t count, int timeout);
int async_select(int count, fd_set *readable, fd_set *writable, fd_set *exceptional, struct timeval *timeout);
ssize_t async_recv(int fd, void *buffer, size_t size, int flags);
ssize_t async_recvfrom(int fd, void *buffer, size_t size, int flags, struct sockaddr *from, socklen_t *from_len);
ssize_t async_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t async_send(int fd, const void *data, size_t size, int flags);
ssize_t async_sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t to_len);
ssize_t async_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t async_read(int fd, void *buffer, size_t size);
ssize_t async_write(int fd, const void *data, size_t size);
int async_connect(int fd, const struct sockaddr *address, socklen_t length);
int async_accept(int fd, struct sockaddr *address, socklen_t *length);
int async_close(int fd);
unsigned async_sleep(unsigned seconds);
int async_usleep(useconds_t microseconds);
int async_nanosleep(const struct timespec *time, struct timespec *left);

#endif
