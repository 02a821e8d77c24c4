/* Kernel state of a process other than its memory: descriptors, current directory, umask, timers, signals, children,
 * threads.
 *
 * At the snapshot, all descriptors below a mark are occupied (holes are filled), so a request's own descriptors are
 * above it and can be closed with one system call. For each descriptor that the application opened at boot, a duplicate
 * is kept: if a request has closed or replaced it, it is restored. */
#include "snapshot/engine/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

void snapshot_touched(unsigned parts) {
    if (snapshot_state_ != NULL) {
        snapshot_state_->process.touched |= parts;
    }
}

void snapshot_unseen(unsigned parts) {
    if (snapshot_state_ != NULL) {
        snapshot_state_->process.unseen |= parts;
    }
}

void snapshot_spoil(const char *why) {
    if (snapshot_state_ != NULL && snapshot_state_->process.spoiled == NULL) {
        snapshot_state_->process.spoiled = why;
    }
}

size_t snapshot_boot_sockets(void) {
    return snapshot_state_ == NULL ? 0 : snapshot_state_->process.n_sockets;
}

/* Calls `each` for all open descriptors. */
static bool each_descriptor(void (*each)(snapshot_process *p, int fd), snapshot_process *p) {
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL) {
        snapshot_set_reason("cannot list /proc/self/fd: %s", strerror(errno));
        return false;
    }
    int own = dirfd(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != own) {
            each(p, fd);
        }
    }
    closedir(directory);
    return true;
}

static void mark_open(snapshot_process *p, int fd) {
    if (fd < (int)sizeof p->open_before * 8) {
        p->open_before[fd / 8] |= (unsigned char)(1u << fd % 8);
    }
}

static bool was_open(const snapshot_process *p, int fd) {
    return fd < (int)sizeof p->open_before * 8 && (p->open_before[fd / 8] & 1u << fd % 8) != 0;
}

void snapshot_process_begin(snapshot_state *s) {
    each_descriptor(mark_open, &s->process);
}

static void keep(snapshot_process *p, int fd) {
    struct stat about;
    if (was_open(p, fd) || p->n_kept == SNAPSHOT_MAX_KEPT || fstat(fd, &about) != 0) {
        if (p->n_kept == SNAPSHOT_MAX_KEPT) {
            snapshot_spoil("more descriptors were opened at boot than can be kept");
        }
        return;
    }
    snapshot_kept *kept = &p->kept[p->n_kept++];
    *kept = (snapshot_kept){
        .fd = fd, .twin = -1, .device = about.st_dev, .inode = about.st_ino, .type = about.st_mode & S_IFMT};
    kept->status_flags = fcntl(fd, F_GETFL);
    kept->descriptor_flags = fcntl(fd, F_GETFD);
    kept->position = lseek(fd, 0, SEEK_CUR);
    p->n_sockets += S_ISSOCK(about.st_mode);
    p->unfit = p->unfit || !snapshot_kept_store(kept);
}

/* Threads do not survive a restore: their stacks and registers are not in the snapshot. */
static bool one_thread(void) {
    DIR *directory = opendir("/proc/self/task");
    if (directory == NULL) {
        snapshot_set_reason("cannot list /proc/self/task: %s", strerror(errno));
        return false;
    }
    char names[160] = "";
    size_t length = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid()) {
            continue;
        }
        char path[64], name[32] = "?";
        snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof name - 1);
        name[n > 0 ? n - 1 : 1] = '\0';
        if (fd >= 0) {
            close(fd);
        }
        if (length < sizeof names) {
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? ", " : "", name);
        }
    }
    closedir(directory);
    if (length > 0) {
        snapshot_set_reason("a PHP extension has started threads, which a snapshot cannot hold: %s", names);
    }
    return length == 0;
}

static bool has_child(void) {
    siginfo_t about;
    return waitid(P_ALL, 0, &about, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool snapshot_process_store(snapshot_state *s) {
    snapshot_process *p = &s->process;
    if (!one_thread()) {
        return false;
    }
    p->n_kept = p->n_sockets = 0;
    for (int i = 0; i < 3; i++) {
        int own[] = {s->memfd, s->pagemap, s->statm};
        if (own[i] >= 0) {
            mark_open(p, own[i]);
        }
    }
    if (!each_descriptor(keep, p) || p->unfit) {
        return false;
    }
    if (p->spoiled != NULL) {
        snapshot_set_reason("%s", p->spoiled);
        return false;
    }
    p->directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < p->n_kept; i++) {
        p->kept[i].twin = fcntl(p->kept[i].fd, F_DUPFD_CLOEXEC, 3);
    }
    p->umask = umask(0);
    umask(p->umask);
    prctl(PR_GET_NAME, p->name);
    p->had_children = has_child();
    p->priority = getpriority(PRIO_PROCESS, 0);
    for (int number = 1; number < NSIG; number++) {
        sigaction(number, NULL, &p->actions[number]);
    }
    sigaltstack(NULL, &p->signal_stack);
    return snapshot_locks_store(p) && snapshot_descriptors_fill(p);
}

/* Unread bytes on an idle connection belong to a request that has ended; the protocol is out of sync. */
int snapshot_restless_socket(void) {
    const snapshot_process *p = &snapshot_state_->process;
    struct pollfd polled[SNAPSHOT_MAX_KEPT];
    nfds_t n = 0;
    for (size_t i = 0; i < p->n_kept; i++) {
        if (S_ISSOCK(p->kept[i].type)) {
            polled[n++] = (struct pollfd){.fd = p->kept[i].twin, .events = POLLIN | POLLRDHUP};
        }
    }
    if (n == 0 || poll(polled, n, 0) <= 0) {
        return -1;
    }
    for (nfds_t i = 0; i < n; i++) {
        if (polled[i].revents == 0) {
            continue;
        }
        for (size_t k = 0; k < p->n_kept; k++) {
            /* A listening socket may have pending connections. */
            int listening = 0;
            socklen_t size = sizeof listening;
            getsockopt(polled[i].fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size);
            if (p->kept[k].twin == polled[i].fd && !listening) {
                return p->kept[k].fd;
            }
        }
    }
    return -1;
}

static bool restore_kept(const snapshot_kept *kept) {
    struct stat about;
    int flags = fcntl(kept->fd, F_GETFL);
    /* A different descriptor with the same file may have been opened for another purpose. */
    bool other = flags < 0 || ((flags ^ kept->status_flags) & O_ACCMODE) != 0 || fstat(kept->fd, &about) != 0 ||
                 about.st_ino != kept->inode || about.st_dev != kept->device;
    if (other) {
        if (dup3(kept->twin, kept->fd, (kept->descriptor_flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) < 0) {
            return false;
        }
    }
    if (kept->position >= 0) {
        lseek(kept->fd, kept->position, SEEK_SET);
    }
    if (other || flags != kept->status_flags) {
        fcntl(kept->fd, F_SETFL, kept->status_flags);
    }
    return true;
}

/* A running thread would be corrupted. Threads come with a stack, so a process of unchanged size has none. */
static bool one_thread_left(const snapshot_state *s) {
    struct stat about;
    return s->size_now == s->size_pages || stat("/proc/self/task", &about) != 0 || about.st_nlink <= 3;
}

bool snapshot_is_boot_descriptor(int fd) {
    const snapshot_state *s = snapshot_state_;
    if (s == NULL || fd < 0 || was_open(&s->process, fd) || fd == s->memfd || fd == s->pagemap || fd == s->statm) {
        return false;
    }
    return !s->taken || snapshot_boot_descriptor(fd) != fd;
}

static snapshot_kept *kept_of(int fd) {
    snapshot_process *p = &snapshot_state_->process;
    for (size_t i = 0; i < p->n_kept; i++) {
        if (p->kept[i].fd == fd && p->kept[i].twin >= 0) {
            return &p->kept[i];
        }
    }
    return NULL;
}

int snapshot_boot_descriptor(int fd) {
    const snapshot_kept *kept = kept_of(fd);
    return kept != NULL ? kept->twin : fd;
}

void snapshot_own_in_forks(int fd) {
    snapshot_kept *kept = kept_of(fd);
    if (kept != NULL) {
        kept->own_in_forks = true;
    }
}

bool snapshot_replace_boot_descriptor(int fd, int by) {
    snapshot_kept *kept = kept_of(fd);
    struct stat about;
    if (kept == NULL || fstat(by, &about) != 0 || dup3(by, kept->twin, O_CLOEXEC) < 0) {
        return false;
    }
    kept->device = about.st_dev;
    kept->inode = about.st_ino;
    return restore_kept(kept);
}

bool snapshot_restorable(void) {
    snapshot_state *s = snapshot_state_;
    return s != NULL && (s->restorable = snapshot_process_check(s));
}

bool snapshot_process_check(snapshot_state *s) {
    if (s->process.spoiled != NULL) {
        snapshot_set_reason("%s", s->process.spoiled);
        return false;
    }
    if (!snapshot_kept_check(&s->process) || !snapshot_locks_check(s)) {
        return false;
    }
    int fd = snapshot_restless_socket();
    if (fd >= 0) {
        snapshot_set_reason(
            "the connection with descriptor %d, opened at boot, is closed or in the middle of a response", fd);
        return false;
    }
    s->size_now = s->statm < 0 ? 0 : snapshot_maps_size(s);
    if (!one_thread_left(s)) {
        snapshot_set_reason("the request has left a thread behind");
        return false;
    }
    return true;
}

bool snapshot_process_rewind(const snapshot_process *p) {
    for (size_t i = 0; i < p->n_kept; i++) {
        if (!restore_kept(&p->kept[i])) {
            snapshot_set_reason("cannot restore descriptor %d, opened at boot", p->kept[i].fd);
            return false;
        }
    }
    return true;
}

static void restore_signals(const snapshot_process *p) {
    for (int number = 1; number < NSIG; number++) {
        if (number != SIGKILL && number != SIGSTOP) {
            sigaction(number, &p->actions[number], NULL);
        }
    }
    /* Pending signals for the handlers of the finished request must not reach the next one. */
    sigset_t pending;
    static const struct timespec now = {0, 0};
    while (sigpending(&pending) == 0) {
        sigdelset(&pending, SIGTERM);
        sigdelset(&pending, SIGSTKFLT); /* the server requests PHP's stack, see stack_signal.rs */
        if (sigtimedwait(&pending, NULL, &now) <= 0) {
            break;
        }
    }
}

/* Reaps children that have ended; true if others are still running. */
static bool reap_children(void) {
    pid_t child;
    while ((child = waitpid(-1, NULL, WNOHANG)) > 0) {
    }
    return child == 0;
}

bool snapshot_process_restore(snapshot_state *s) {
    snapshot_process *p = &s->process;
    const unsigned touched = p->touched | p->unseen;
    p->touched = 0;
    if ((touched & SNAPSHOT_ALARM) != 0) {
        static const struct itimerval off;
        setitimer(ITIMER_REAL, &off, NULL);
    }
    if ((touched & SNAPSHOT_SIGNALS) != 0) {
        restore_signals(p);
    }
    snapshot_locks_close(p);
    if (!snapshot_process_rewind(p)) {
        return false;
    }
    if ((touched & SNAPSHOT_DIRECTORY) != 0 && p->directory >= 0) {
        (void)!fchdir(p->directory);
    }
    if ((touched & SNAPSHOT_UMASK) != 0) {
        umask(p->umask);
    }
    if ((touched & SNAPSHOT_NAME) != 0) {
        prctl(PR_SET_NAME, p->name);
    }
    if ((touched & SNAPSHOT_CHILDREN) != 0 && !p->had_children && reap_children()) {
        p->touched = SNAPSHOT_CHILDREN;
    }
    return true;
}

bool snapshot_process_adopt(snapshot_state *s) {
    s->process.had_children = false;
    return snapshot_descriptors_fill(&s->process);
}
