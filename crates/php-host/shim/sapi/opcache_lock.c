/* A process that uses OPcache's shared memory holds a read lock on one byte of a file, from the first script of a
 * request to its end: two system calls per request, on a list of locks that all workers share. Processes look for such
 * locks when the cache must be restarted: one that begins a request restarts it if no other has the lock, and after
 * opcache.force_restart_timeout (180 s) kills those that have it.
 *
 * Here a worker keeps the lock for its next request. It must not delay a restart for that, so it gives the lock up
 *   - when it begins a request and OPcache looks for others' locks: then a restart is pending, and until it is done,
 *     no request locks again. So even workers that are never idle hold the lock for the rest of one request only;
 *   - when it was idle for a moment (sapi/current_request.c). */
#include "sapi/opcache_lock.h"

#include "shim.h"
#include "process/import_hooks.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>

/* OPcache's constants: the byte that users lock, and the range that a request's end unlocks (0: to the file's end). */
#define USAGE_BYTE 1
#define USAGE_LENGTH 1

/* OPcache's file; -1: not locked yet. */
static int file = -1;
static bool locked; /* in the kernel */
static bool in_use; /* OPcache believes so */

static bool is_usage(const struct flock *lock) {
    return lock->l_whence == SEEK_SET && lock->l_start == USAGE_BYTE && lock->l_len == USAGE_LENGTH;
}

static bool covers_whole_file(const struct flock *lock) {
    return lock->l_whence == SEEK_SET && lock->l_start == 0 && lock->l_len == 0;
}

static int use(int fd, const struct flock *lock) {
    if (locked && fd == file) {
        in_use = true;
        return 0;
    }
    int status = fcntl(fd, F_SETLK, lock);
    if (status == 0) {
        file = fd;
        locked = in_use = true;
    }
    return status;
}

bool shim_opcache_lock_is_kept(void) {
    return locked && !in_use;
}

void shim_opcache_lock_release(void) {
    static const struct flock usage = {
        .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = USAGE_BYTE, .l_len = USAGE_LENGTH};
    if (locked && !in_use) {
        locked = false;
        fcntl(file, F_SETLK, &usage);
    }
}

static int set_lock(int fd, const struct flock *lock) {
    if (lock->l_type == F_RDLCK && is_usage(lock)) {
        return use(fd, lock);
    }
    if (fd == file && lock->l_type == F_UNLCK) {
        if (in_use && covers_whole_file(lock)) {
            in_use = false;
            return 0;
        }
        if (is_usage(lock) || covers_whole_file(lock)) {
            locked = in_use = false;
        }
    }
    return fcntl(fd, F_SETLK, lock);
}

/* The third argument is a number or a pointer; either can be passed as a pointer. */
static int watched_fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (command == F_SETLK) {
        return set_lock(fd, argument);
    }
    if (command == F_GETLK && fd == file && is_usage(argument)) {
        shim_opcache_lock_release();
    }
    return fcntl(fd, command, argument);
}

/* A child has none of its parent's locks. */
static void forked(void) {
    locked = in_use = false;
}

static const import_hook hooks[] = {{"fcntl", watched_fcntl}, {"fcntl64", watched_fcntl}};

void shim_opcache_lock_watch(void) {
    if (pthread_atfork(NULL, NULL, forked) == 0) {
        import_hooks_install_in(SHIM_OPCACHE_LIBRARY, hooks, sizeof hooks / sizeof *hooks);
    }
}
