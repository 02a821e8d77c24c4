/* Locks that the process holds on files that the application opened at boot.
 *
 * Locks of fcntl(), as SQLite takes them, belong to the process: closing any descriptor of a file releases all of them,
 * including those taken through another descriptor. SQLite therefore keeps descriptors open that it would otherwise
 * close; but its list of them is in memory, and a restore resets it. So a request's descriptors are left open if their
 * file was locked at the snapshot. If a lock is lost nevertheless (the script itself has opened and closed the file),
 * it cannot be restored: another process may have taken it in the meantime. The worker ends then. */
#include "snapshot/engine/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

void snapshot_locks_touched(void) {
    if (snapshot_state_ != NULL) {
        snapshot_state_->process.locks_touched = true;
    }
}

bool snapshot_has_locked_files(void) {
    return snapshot_state_ != NULL && snapshot_state_->process.n_file_locks > 0;
}

bool snapshot_lock_was_lost(void) {
    return snapshot_state_ != NULL && snapshot_state_->process.lock_lost;
}

/* Parses lines such as "lock:  1: POSIX  ADVISORY  READ  4711 00:01:1029 1 1", from the kind of the lock on. */
static size_t list_locks(int fd, int owner, snapshot_file_lock *locks, size_t n, size_t most) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *kind = strncmp(line, "lock:", 5) == 0 ? strchr(line + 5, ':') : NULL;
        if (kind != NULL && n < most) {
            locks[n].fd = owner;
            snprintf(locks[n].text, sizeof locks[n].text, "%s", kind + 1);
            n++;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return n;
}

static bool can_be_locked(const snapshot_kept *kept) {
    return S_ISREG(kept->type) || S_ISDIR(kept->type);
}

bool snapshot_locks_store(snapshot_process *p) {
    p->n_file_locks = 0;
    for (size_t i = 0; i < p->n_kept; i++) {
        if (can_be_locked(&p->kept[i])) {
            p->n_file_locks =
                list_locks(p->kept[i].fd, p->kept[i].fd, p->file_locks, p->n_file_locks, SNAPSHOT_MAX_FILE_LOCKS);
        }
    }
    if (p->n_file_locks == SNAPSHOT_MAX_FILE_LOCKS) {
        snapshot_set_reason("too many locks are held on files that were opened at boot");
        return false;
    }
    return true;
}

/* With a process for each request, locks of fcntl() are the parent's and cannot be lost here. */
static bool counts(const snapshot_state *s, const snapshot_file_lock *lock) {
    return s->numbers.way != SNAPSHOT_WAY_FORK || strncmp(lock->text, " POSIX", 6) != 0;
}

/* Releases a lock that the request has left: "POSIX  ADVISORY  WRITE 4711 00:01:1029 120 120". */
static bool unlock(const snapshot_file_lock *lock) {
    char kind[16] = "", first[24] = "", last[24] = "";
    if (sscanf(lock->text, "%15s %*s %*s %*s %*s %23s %23s", kind, first, last) != 3) {
        return false;
    }
    if (strcmp(kind, "FLOCK") == 0) {
        return flock(lock->fd, LOCK_UN) == 0;
    }
    off_t start = strtoll(first, NULL, 10);
    struct flock order = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = start};
    order.l_len = strcmp(last, "EOF") == 0 ? 0 : strtoll(last, NULL, 10) - start + 1;
    return fcntl(lock->fd, strcmp(kind, "POSIX") == 0 ? F_SETLK : F_OFD_SETLK, &order) == 0;
}

static bool contains_lock(const snapshot_file_lock *locks, size_t n, const char *text) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(locks[i].text, text) == 0) {
            return true;
        }
    }
    return false;
}

/* True if the file of a request's descriptor was locked at the snapshot. */
static bool is_locked_file(const snapshot_process *p, int fd) {
    struct stat about;
    if (fstat(fd, &about) != 0) {
        return false;
    }
    for (size_t i = 0; i < p->n_kept; i++) {
        const snapshot_kept *kept = &p->kept[i];
        for (size_t k = 0; k < p->n_file_locks && kept->inode == about.st_ino && kept->device == about.st_dev; k++) {
            if (p->file_locks[k].fd == kept->fd) {
                return true;
            }
        }
    }
    return false;
}

/* Finds the request's descriptors that must stay open, and their locks. */
static bool find_parked(snapshot_process *p, snapshot_file_lock *now, size_t *n) {
    p->n_parking = 0;
    if (p->n_file_locks == 0) {
        return true;
    }
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL) {
        snapshot_set_reason("cannot list /proc/self/fd: %s", strerror(errno));
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fd < p->first_free || fd == dirfd(directory) || !is_locked_file(p, fd)) {
            continue;
        }
        if (p->n_parked + p->n_parking == SNAPSHOT_MAX_PARKED) {
            closedir(directory);
            snapshot_set_reason("requests repeatedly opened a file that has been locked since the boot");
            return false;
        }
        *n = list_locks(fd, fd, now, *n, SNAPSHOT_MAX_FILE_LOCKS + 1);
        size_t at = p->n_parking++;
        for (; at > 0 && p->parking[at - 1] > fd; at--) {
            p->parking[at] = p->parking[at - 1];
        }
        p->parking[at] = fd;
    }
    closedir(directory);
    return true;
}

bool snapshot_locks_check(snapshot_state *s) {
    snapshot_process *p = &s->process;
    p->n_parking = 0;
    if (p->n_file_locks == 0 && !p->locks_touched) {
        return true;
    }
    snapshot_file_lock now[SNAPSHOT_MAX_FILE_LOCKS + 1];
    size_t n = 0;
    for (size_t i = 0; i < p->n_kept; i++) {
        if (can_be_locked(&p->kept[i])) {
            n = list_locks(p->kept[i].twin, p->kept[i].twin, now, n, SNAPSHOT_MAX_FILE_LOCKS + 1);
        }
    }
    if (!find_parked(p, now, &n)) {
        return false;
    }
    for (size_t i = 0; i < p->n_file_locks; i++) {
        if (counts(s, &p->file_locks[i]) && !contains_lock(now, n, p->file_locks[i].text)) {
            p->lock_lost = true;
            snapshot_set_reason("a lock on the file of descriptor %d, opened at boot, was lost", p->file_locks[i].fd);
            return false;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (counts(s, &now[i]) && !contains_lock(p->file_locks, p->n_file_locks, now[i].text) && !unlock(&now[i])) {
            snapshot_set_reason("cannot release the request's lock on a file that was opened at boot");
            return false;
        }
    }
    return true;
}

static void close_descriptor_range(int from, int below) {
    if (from >= below || syscall(SYS_close_range, (unsigned)from, (unsigned)below - 1, 0u) == 0) {
        return;
    }
    /* Before Linux 5.9. */
    for (int fd = from; fd < below && fd < 65536; fd++) {
        close(fd);
    }
}

void snapshot_locks_close(snapshot_process *p) {
    int from = p->first_free;
    for (size_t i = 0; i < p->n_parking; i++) {
        close_descriptor_range(from, p->parking[i]);
        from = p->parking[i] + 1;
    }
    close_descriptor_range(from, INT_MAX);
    p->locks_touched = false;
    if (p->n_parking > 0) {
        p->n_parked += p->n_parking;
        p->n_parking = 0;
        snapshot_descriptors_fill(p);
    }
}
