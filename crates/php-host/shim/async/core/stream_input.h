/* Buffered input of a stream socket that a coroutine reads. */
#ifndef HOWDAH_ASYNC_CORE_STREAM_INPUT_H
#define HOWDAH_ASYNC_CORE_STREAM_INPUT_H

#include "shim.h"

#include <sys/types.h>

typedef struct stream_input {
    /* Bytes that were read and not taken; NULL if there are none. */
    char *ahead;
    size_t at, length;
} stream_input;

/* Takes up to `size` bytes, like recv(2) with MSG_DONTWAIT. `may_skip`: returns EAGAIN without a system call if the
 * event loop knows that nothing has arrived; only for callers that then wait for an event. */
ssize_t stream_input_take(stream_input *self, int fd, void *to, size_t size, bool may_skip);
void stream_input_free(stream_input *self);

#endif
