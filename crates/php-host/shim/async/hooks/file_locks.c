/* flock() for coroutines: session files, LOCK_EX of file_put_contents(). A lock that another request in the same
 * process holds would never be released if the process blocked. The kernel does not report released locks, so a
 * coroutine tries again: at once when this process has released a lock or a descriptor, after a growing pause for locks
 * of other processes. */
#include "async/hooks/file_locks.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/timers.h"
#include "async/hooks/waits.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define FIRST_PAUSE UINT64_C(1000000)
#define LONGEST_PAUSE UINT64_C(20000000)

/* A coroutine that waits for a lock; on that coroutine's stack. */
typedef struct lock_wait {
    coroutine *owner;
    struct lock_wait *next;
} lock_wait;

static lock_wait *first, **last = &first;

void async_lock_released(void) {
    /* In order of arrival; all of them, because it is unknown which file was released. */
    for (lock_wait *wait = first; wait != NULL; wait = wait->next) {
        coroutine_wake(wait->owner, COROUTINE_WOKEN);
    }
}

static void end_wait(lock_wait *wait) {
    lock_wait **at = &first;
    while (*at != wait) {
        at = &(*at)->next;
    }
    *at = wait->next;
    if (last == &wait->next) {
        last = at;
    }
}

/* Bitmap of descriptors that coroutines have locked; it may include one that was closed without our knowledge. */
static unsigned char *locked;
static int locked_size;

static void note_lock(int fd) {
    if (fd >= locked_size) {
        int size = fd + 256;
        locked = perealloc(locked, (size_t)size, 1);
        memset(locked + locked_size, 0, (size_t)(size - locked_size));
        locked_size = size;
    }
    locked[fd] = 1;
}

void async_forget_lock(int fd) {
    if (fd >= 0 && fd < locked_size) {
        locked[fd] = 0;
    }
}

/* True if this process has locked the same file through another descriptor. */
static bool is_locked_by_process(int fd) {
    struct stat wanted, other;
    if (fstat(fd, &wanted) != 0) {
        return false;
    }
    for (int i = 0; i < locked_size; i++) {
        if (locked[i] != 0 && i != fd && fstat(i, &other) == 0 && other.st_dev == wanted.st_dev &&
            other.st_ino == wanted.st_ino) {
            return true;
        }
    }
    return false;
}

/* Blocks the process where a coroutine may not wait. Fails if another coroutine of the process holds the lock, since
 * that wait would never end. */
static int lock_blocking(int fd, int operation) {
    if (coroutine_current == NULL) {
        return flock(fd, operation);
    }
    if (flock(fd, operation | LOCK_NB) == 0) {
        return 0;
    }
    if (errno != EWOULDBLOCK) {
        return -1;
    }
    if (is_locked_by_process(fd)) {
        errno = EDEADLK;
        return -1;
    }
    return flock(fd, operation);
}

static int lock_now(int fd, int operation) {
    bool waits = (operation & (LOCK_NB | LOCK_UN)) == 0;
    int result = waits ? lock_blocking(fd, operation) : flock(fd, operation);
    if ((operation & LOCK_UN) != 0) {
        async_forget_lock(fd);
        async_lock_released();
    } else if (result == 0) {
        note_lock(fd);
    }
    return result;
}

int async_flock(int fd, int operation) {
    if ((operation & (LOCK_NB | LOCK_UN)) != 0 || !async_may_wait()) {
        return shim.script_child ? flock(fd, operation) : lock_now(fd, operation);
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
    end_wait(&wait);
    if (result == 0) {
        note_lock(fd);
    }
    errno = error;
    return result;
}
