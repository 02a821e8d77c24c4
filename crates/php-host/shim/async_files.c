/* flock() for coroutines: session files, LOCK_EX of file_put_contents(). A lock of another request in the same process
 * would never be released if the process waited for it. The kernel tells nobody when a lock is free, so a coroutine
 * tries again: at once when this process has let a lock or a descriptor go, after a growing pause for those of others.
 */
#include "async_hooks.h"

#include <errno.h>
#include <sys/file.h>

#define FIRST_PAUSE UINT64_C(1000000)
#define LONGEST_PAUSE UINT64_C(20000000)

/* A coroutine that waits for a lock; lies on its stack. */
typedef struct lock_wait {
    coroutine *owner;
    struct lock_wait *next;
} lock_wait;

static lock_wait *first, **last = &first;

void async_lock_released(void) {
    /* In the order in which they came; all, as nobody knows which file it was. */
    for (lock_wait *wait = first; wait != NULL; wait = wait->next) {
        coroutine_wake(wait->owner, COROUTINE_WOKEN);
    }
}

static void leave(lock_wait *wait) {
    lock_wait **at = &first;
    while (*at != wait) {
        at = &(*at)->next;
    }
    *at = wait->next;
    if (last == &wait->next) {
        last = at;
    }
}

int async_flock(int fd, int operation) {
    if ((operation & (LOCK_NB | LOCK_UN)) != 0 || !async_may_wait()) {
        int result = flock(fd, operation);
        if ((operation & LOCK_UN) != 0) {
            async_lock_released();
        }
        return result;
    }
    lock_wait wait = {.owner = coroutine_current};
    *last = &wait;
    last = &wait.next;
    uint64_t pause = FIRST_PAUSE;
    int result;
    while ((result = flock(fd, operation | LOCK_NB)) != 0 && errno == EWOULDBLOCK) {
        if (coroutine_wait(async_after(pause), "flock") == COROUTINE_CANCELLED) {
            errno = ECANCELED;
            break;
        }
        pause = pause * 2 < LONGEST_PAUSE ? pause * 2 : LONGEST_PAUSE;
    }
    int error = errno;
    leave(&wait);
    errno = error;
    return result;
}
