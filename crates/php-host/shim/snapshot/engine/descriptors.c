/* Kernel state of the descriptors that the application opened at boot, where no system call can restore it: bytes that
 * wait in a pipe, the content of files without a name, counters and lists of eventfd, inotify, epoll and the like. A
 * request that has changed any of it ends the worker. This file also occupies free descriptor numbers, so that a
 * request's descriptors come after the application's. */
#include "snapshot/engine/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* True for lines of /proc/self/fdinfo that are state of a descriptor that is neither file nor socket. Position and
 * flags are restored elsewhere, and the remaining time of an armed timer decreases anyway. */
static bool is_state(const char *line) {
    static const char *const passing[] = {"pos:", "flags:", "it_value:", "mnt_id:"};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        if (strncmp(line, passing[i], strlen(passing[i])) == 0) {
            return false;
        }
    }
    return true;
}

/* Returns a checksum over the kernel's description of such a descriptor, and whether it is readable. */
static uint64_t state_of(int fd) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "re");
    uint64_t sum = 0xcbf29ce484222325u;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        for (const char *at = line; is_state(line) && *at != '\0'; at++) {
            sum = (sum ^ (unsigned char)*at) * 0x100000001b3u;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, 0) > 0 ? sum ^ 1 : sum;
}

static bool is_anonymous(mode_t type) {
    return type == 0;
}

static int unread(int fd) {
    int bytes = 0;
    return ioctl(fd, FIONREAD, &bytes) == 0 ? bytes : 0;
}

static bool listens(int fd) {
    int listening = 0;
    socklen_t size = sizeof listening;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening;
}

/* A file without a name, or with one that only mkstemp() makes, as PHP's tmpfile() does: no other process is meant to
 * read it. */
static bool is_private(const snapshot_kept *kept, const struct stat *about) {
    char path[64], target[256];
    if (!S_ISREG(kept->type) || (kept->status_flags & O_ACCMODE) == O_RDONLY) {
        return false;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", kept->fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    const char *name = strrchr(target, '/');
    return about->st_nlink == 0 ||
           (name != NULL && strncmp(name, "/php", 4) == 0 && strlen(name) == sizeof "/phpXXXXXX" - 1);
}

bool snapshot_kept_store(snapshot_kept *kept) {
    struct stat about;
    if (fstat(kept->fd, &about) != 0) {
        return true;
    }
    if (is_private(kept, &about)) {
        /* Otherwise a write in the same tick of the clock would not be noticed. */
        const struct timespec past[2] = {{0, UTIME_OMIT}, {about.st_mtim.tv_sec - 1, about.st_mtim.tv_nsec}};
        kept->private = true;
        kept->size = about.st_size;
        kept->changed = futimens(kept->fd, past) == 0 ? past[1] : about.st_mtim;
    } else if (S_ISFIFO(kept->type)) {
        kept->unread = unread(kept->fd);
    } else if (is_anonymous(kept->type)) {
        kept->state = state_of(kept->fd);
    } else if (S_ISSOCK(kept->type) && !listens(kept->fd) && unread(kept->fd) > 0) {
        snapshot_set_reason("descriptor %d, a connection, has bytes that the boot has not read", kept->fd);
        return false;
    }
    return true;
}

static const char *describe_change(const snapshot_kept *kept) {
    struct stat about;
    if (kept->private && fstat(kept->twin, &about) == 0 &&
        (about.st_size != kept->size || about.st_mtim.tv_sec != kept->changed.tv_sec ||
         about.st_mtim.tv_nsec != kept->changed.tv_nsec)) {
        return "a temporary file";
    }
    if (S_ISFIFO(kept->type) && unread(kept->twin) != kept->unread) {
        return "a pipe with unread bytes";
    }
    if (is_anonymous(kept->type) && state_of(kept->twin) != kept->state) {
        return "an event counter, a timer or an epoll descriptor";
    }
    return NULL;
}

bool snapshot_kept_check(const snapshot_process *p) {
    for (size_t i = 0; i < p->n_kept; i++) {
        const char *what = describe_change(&p->kept[i]);
        if (what != NULL) {
            snapshot_set_reason("a request has changed the object of descriptor %d, opened at boot: %s", p->kept[i].fd,
                                what);
            return false;
        }
    }
    return true;
}

/* Returns the highest open descriptor, but at least this one. In a sandbox /proc/self/fd cannot be listed: then each
 * number up to the limit is checked. A result that is too low would make the end of a request close a descriptor of the
 * boot. */
static int highest_descriptor(int highest) {
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL) {
        long limit = sysconf(_SC_OPEN_MAX);
        for (int fd = highest + 1; fd < (limit > 0 && limit < 65536 ? limit : 65536); fd++) {
            if (fcntl(fd, F_GETFD) >= 0) {
                highest = fd;
            }
        }
        return highest;
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (fd != dirfd(directory) && fd > highest) {
            highest = fd;
        }
    }
    closedir(directory);
    return highest;
}

bool snapshot_descriptors_fill(snapshot_process *p) {
    int filler = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (filler < 0) {
        snapshot_set_reason("cannot open /dev/null: %s", strerror(errno));
        return false;
    }
    int highest = highest_descriptor(filler);
    /* dup() takes the lowest free number. */
    int fd;
    while ((fd = fcntl(filler, F_DUPFD_CLOEXEC, 0)) >= 0 && fd < highest) {
    }
    if (fd > highest) {
        close(fd);
    }
    p->first_free = highest + 1;
    return true;
}
