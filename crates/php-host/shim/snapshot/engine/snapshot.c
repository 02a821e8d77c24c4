/* Takes the snapshot and restores it: the order of the steps. Both happen on the engine's own stack with all signals
 * blocked, so that no page of the snapshot changes meanwhile.
 *
 * Where written pages cannot be found (no /proc/self/pagemap, as in some containers), snapshot_take() forks instead:
 * each request runs in a child that ends where it would have been restored. */
#include "snapshot/engine/snapshot.h"

#include "snapshot/engine/internal.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ENGINE_STACK (256 * 1024)
/* Free bytes of the C library's heap at the snapshot, so that requests need not extend it. */
#define HEAP_RESERVE (2 * 1024 * 1024)
/* Bytes of the C library's metadata at either end of a free block. */
#define HEAP_NOTES 128
/* Exit status with which a child asks the worker to end. */
#define CHILD_STOP 75

#if defined(__x86_64__)
#define STACK_POINTER(context) ((char *)(context)->uc_mcontext.gregs[REG_RSP])
#elif defined(__aarch64__)
#define STACK_POINTER(context) ((char *)(context)->uc_mcontext.sp)
#else
#error "snapshot.c: where is the stack pointer in ucontext_t on this architecture?"
#endif
/* The red zone below the stack pointer, x86-64 ABI. */
#define RED_ZONE 128

/* True in a child that runs a request (SNAPSHOT_WAY_FORK). */
static bool in_child;

const snapshot_numbers *snapshot_stats(void) {
    static const snapshot_numbers none;
    return snapshot_state_ == NULL ? &none : &snapshot_state_->numbers;
}

bool snapshot_awaited(void) {
    return snapshot_state_ != NULL && !snapshot_state_->taken;
}

bool snapshot_taken(void) {
    return snapshot_state_ != NULL && snapshot_state_->taken;
}

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool snapshot_prepare(void) {
    if (snapshot_state_ != NULL) {
        return true;
    }
    snapshot_state *s = snapshot_engine_memory(sizeof *s);
    if (s == NULL) {
        return false;
    }
    snapshot_state_ = s;
    snapshot_spare(s, (sizeof *s + SNAPSHOT_PAGE - 1) & ~(SNAPSHOT_PAGE - 1));
    s->heap_loose = SNAPSHOT_MAX_LOOSE;
    s->memfd = s->pagemap = s->statm = -1;
    s->text_size = 4 * 1024 * 1024;
    s->text = snapshot_engine_memory(s->text_size);
    s->engine_stack_size = ENGINE_STACK;
    s->engine_stack = snapshot_engine_memory(ENGINE_STACK);
    s->max_ranges = 16384;
    s->ranges = snapshot_engine_memory(s->max_ranges * sizeof *s->ranges);
    s->layout = snapshot_engine_memory(s->max_ranges * sizeof *s->layout);
    s->own = snapshot_engine_memory(SNAPSHOT_MAX_OWN * sizeof *s->own);
    if (s->text == NULL || s->engine_stack == NULL || s->ranges == NULL || s->layout == NULL || s->own == NULL) {
        snapshot_set_reason("no memory for the snapshot engine");
        return false;
    }
    /* Keeps the C library's heap in one piece that only grows: no block is a separate mapping that free() unmaps. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, HEAP_RESERVE);
    s->numbers.way = snapshot_pages_choose(s);
    snapshot_process_begin(s);
    snapshot_share_begin(s);
    return true;
}

bool snapshot_covers(const void *address) {
    const snapshot_state *s = snapshot_state_;
    return s != NULL && s->taken && snapshot_range_of(s, address) != NULL;
}

/* Copies the stack from the frame of snapshot_take() up. */
static bool store_stack(snapshot_state *s) {
    s->stack_start = STACK_POINTER(&s->context) - RED_ZONE;
    if (s->stack_end == NULL || s->stack_start >= s->stack_end || s->stack_end - s->stack_start > 64 * 1024 * 1024) {
        snapshot_set_reason("the snapshot was requested on another stack (in a fiber?)");
        return false;
    }
    size_t length = (size_t)(s->stack_end - s->stack_start);
    s->stack_copy = snapshot_engine_memory(length);
    if (s->stack_copy == NULL) {
        snapshot_set_reason("no memory for a copy of the stack");
        return false;
    }
    memcpy(s->stack_copy, s->stack_start, length);
    return true;
}

/* Runs on the engine's stack. Returns from snapshot_take(). */
static void take(void) {
    snapshot_state *s = snapshot_state_;
    s->program_break = (void *)syscall(SYS_brk, 0);
    s->failed = !(snapshot_process_store(s) && snapshot_maps_store(s) && snapshot_pages_prepare(s) &&
                  snapshot_trim_prepare(s) && store_stack(s));
    if (!s->failed) {
        snapshot_copy_prepare(s);
        /* From here on, a failure leaves memory inconsistent. */
        if (!snapshot_maps_replace(s)) {
            snapshot_die(s);
        }
        s->taken = true;
        s->size_pages = snapshot_maps_size(s);
        s->faults = -1; /* makes the first restore search */
    }
    setcontext(&s->context);
    _exit(EXIT_FAILURE);
}

/* Runs on the engine's stack. Returns from snapshot_take(). */
static void restore(void) {
    snapshot_state *s = snapshot_state_;
    uint64_t began = nanoseconds();
    if (!snapshot_process_restore(s)) {
        snapshot_die(s);
    }
    /* Without a fault, no new page was written. The layout may still have changed, but then the size has, too: a
     * mapping that replaces another one faults when it is used. */
    bool resized = s->size_now != s->size_pages;
    if (resized || sbrk(0) != s->program_break) {
        syscall(SYS_brk, s->program_break);
    }
    bool search = resized || snapshot_pages_faults() != s->faults;
    if (search) {
        s->numbers.layouts += resized;
        s->numbers.scans++;
        if (!snapshot_maps_reconcile(s)) {
            snapshot_die(s);
        }
        snapshot_share_mend(s);
        if (!snapshot_pages_find(s)) {
            snapshot_die(s);
        }
    }
    snapshot_trim_watch(s);
    snapshot_copy_back(s);
    memcpy(s->stack_start, s->stack_copy, (size_t)(s->stack_end - s->stack_start));
    if (snapshot_trim_due(s) && snapshot_trim_end(s) > 0) {
        search = true;
        if (!snapshot_pages_find(s)) {
            snapshot_die(s);
        }
    }
    if (search) {
        s->size_pages = snapshot_maps_size(s);
        s->faults = snapshot_pages_faults();
    }
    s->numbers.restores++;
    s->numbers.last_ns = nanoseconds() - began;
    setcontext(&s->context);
    _exit(EXIT_FAILURE);
}

/* Runs one child per request. Returns in children only; this process exits after the first child that does not
 * succeed. */
static void run_children(snapshot_state *s, void (*forking)(void)) {
    for (;;) {
        forking();
        pid_t parent = getpid();
        pid_t child = snapshot_fork();
        if (child < 0) {
            fprintf(stderr, "howdah-php: fork: %s\n", strerror(errno));
            _exit(EXIT_FAILURE);
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) {
                _exit(0);
            }
            in_child = true;
            return;
        }
        int status;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        snapshot_process_rewind(&s->process);
        s->numbers.restores++;
        if (WIFSIGNALED(status)) {
            /* The server must see the same signal. */
            signal(WTERMSIG(status), SIG_DFL);
            raise(WTERMSIG(status));
            _exit(EXIT_FAILURE);
        }
        if (WEXITSTATUS(status) != 0) {
            _exit(WEXITSTATUS(status) == CHILD_STOP ? 0 : WEXITSTATUS(status));
        }
    }
}

__attribute__((noinline, noipa)) snapshot_return snapshot_take(void (*forking)(void)) {
    snapshot_state *s = snapshot_state_;
    if (s == NULL) {
        return SNAPSHOT_FAILED;
    }
    /* Extends the heap once. The freed block stays in the heap, and free memory has content only at its ends. */
    void *reserve = malloc(HEAP_RESERVE);
    uintptr_t at = (uintptr_t)reserve;
    free(reserve);
    if (at != 0) {
        s->heap_loose = s->n_loose;
        snapshot_loose((void *)(at + HEAP_NOTES), HEAP_RESERVE - 2 * HEAP_NOTES);
    }
    if (s->numbers.way == SNAPSHOT_WAY_FORK) {
        if (!snapshot_process_store(s)) {
            return SNAPSHOT_FAILED;
        }
        s->taken = true;
        run_children(s, forking);
        return s->numbers.restores == 0 ? SNAPSHOT_TAKEN : SNAPSHOT_RESTORED;
    }
    getcontext(&s->engine);
    sigfillset(&s->engine.uc_sigmask);
    getcontext(&s->context);
    /* Reached before the snapshot is taken, after that, and after each restore. */
    if (s->failed) {
        return SNAPSHOT_FAILED;
    }
    if (!s->taken) {
        snapshot_on_engine_stack(take);
    }
    return s->numbers.restores == 0 ? SNAPSHOT_TAKEN : SNAPSHOT_RESTORED;
}

void snapshot_restore(void) {
    snapshot_state *s = snapshot_state_;
    if (s == NULL || !s->taken) {
        return;
    }
    if (!s->restorable && !snapshot_process_check(s)) {
        return;
    }
    s->restorable = false;
    if (s->numbers.way == SNAPSHOT_WAY_FORK) {
        _exit(0);
    }
    snapshot_on_engine_stack(restore);
}

void snapshot_exit(void) {
    _exit(in_child ? CHILD_STOP : 0);
}
