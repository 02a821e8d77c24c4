/* Buffered input of a stream socket. One recv() takes all parts of a message that have arrived, and a short result
 * means that nothing is left: no second call and no new registration with epoll is needed before the next wait. */
#include "async/core/stream_input.h"

#include "async/core/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Larger reads go straight to the caller's memory. */
#define READ_SIZE (16 * 1024)

static ssize_t receive(int fd, void *to, size_t size) {
    ssize_t received = recv(fd, to, size, MSG_DONTWAIT);
    if ((received > 0 && (size_t)received < size) || (received < 0 && errno == EAGAIN)) {
        async_fd_emptied(fd);
    }
    return received;
}

ssize_t stream_input_take(stream_input *self, int fd, void *to, size_t size, bool may_skip) {
    /* One for all: a process has one thread, and no coroutine keeps anything in it. */
    static char space[READ_SIZE];
    if (self->ahead != NULL) {
        size_t taken = MIN(size, self->length - self->at);
        memcpy(to, self->ahead + self->at, taken);
        self->at += taken;
        if (self->at == self->length) {
            stream_input_free(self);
        }
        return (ssize_t)taken;
    }
    if (may_skip && async_fd_is_empty(fd)) {
        errno = EAGAIN;
        return -1;
    }
    if (size >= READ_SIZE) {
        return receive(fd, to, size);
    }
    ssize_t received = receive(fd, space, READ_SIZE);
    if (received <= 0) {
        return received;
    }
    size_t taken = MIN(size, (size_t)received);
    memcpy(to, space, taken);
    if (taken < (size_t)received) {
        self->at = 0;
        self->length = (size_t)received - taken;
        self->ahead = emalloc(self->length);
        memcpy(self->ahead, space + taken, self->length);
    }
    return (ssize_t)taken;
}

void stream_input_free(stream_input *self) {
    if (self->ahead != NULL) {
        efree(self->ahead);
        self->ahead = NULL;
    }
}
