/* The functions that take the place of libc's in the libraries PHP uses. Each behaves as the one it stands for, error
 * codes included, except that in a coroutine a wait lets others run; outside of coroutines, in other threads and in
 * processes that a script forked, each is the original. */
#ifndef HOWDAH_ASYNC_HOOKS_H
#define HOWDAH_ASYNC_HOOKS_H

#include "async.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

/* True if the calling code may be made to wait in its coroutine. */
bool async_may_wait(void);
/* The same for calls that are made to wait: the audit reports where they can only block. */
bool async_may_sleep(void);
/* True if what the calling code does to a descriptor is done to the worker's. */
bool async_owns_descriptors(void);

/* --- async_io.c: descriptors and sleep --- */
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

/* --- async_files.c --- */
int async_flock(int fd, int operation);
/* This process has let go of a lock, perhaps. */
void async_lock_released(void);
/* A descriptor is closed, and its lock with it. */
void async_forget_lock(int fd);

/* --- async_process.c --- */
pid_t async_waitpid(pid_t pid, int *status, int options);
pid_t async_wait4(pid_t pid, int *status, int options, struct rusage *usage);
FILE *async_popen(const char *command, const char *type);
int async_pclose(FILE *stream);

/* --- async_names.c --- */
int async_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found);
int async_getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_len, char *service,
                      socklen_t service_len, int flags);
int async_gethostbyname_r(const char *name, struct hostent *entry, char *buffer, size_t size, struct hostent **found,
                          int *error);

#endif
