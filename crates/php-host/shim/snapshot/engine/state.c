/* The engine's state, which all its files share: its memory, other memory that is left out of the snapshot, the reason
 * of a failed step, and the stack on which memory is changed. */
#include "snapshot/engine/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

snapshot_state *snapshot_state_;

void snapshot_set_reason(const char *format, ...) {
    if (snapshot_state_ == NULL) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(snapshot_state_->reason, sizeof snapshot_state_->reason, format, arguments);
    va_end(arguments);
}

const char *snapshot_reason(void) {
    return snapshot_state_ == NULL ? "no memory for the snapshot engine" : snapshot_state_->reason;
}

bool snapshot_spare(const void *start, size_t length) {
    snapshot_state *s = snapshot_state_;
    if (s == NULL || s->n_spared == SNAPSHOT_MAX_SPARED) {
        return false;
    }
    s->spared[s->n_spared].start = (char *)start;
    s->spared[s->n_spared].end = (char *)start + length;
    s->n_spared++;
    return true;
}

void snapshot_loose(const void *start, size_t length) {
    snapshot_state *s = snapshot_state_;
    /* Whole pages only. */
    char *from = (char *)(((uintptr_t)start + SNAPSHOT_PAGE - 1) & ~(SNAPSHOT_PAGE - 1));
    char *to = (char *)(((uintptr_t)start + length) & ~(SNAPSHOT_PAGE - 1));
    if (s != NULL && s->n_loose < SNAPSHOT_MAX_LOOSE && from < to) {
        s->loose[s->n_loose++] = (snapshot_area){from, to};
    }
}

void *snapshot_engine_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    /* Most of it is hardly touched. */
    madvise(memory, size, MADV_NOHUGEPAGE);
    size_t pages = (size + SNAPSHOT_PAGE - 1) & ~(SNAPSHOT_PAGE - 1);
    if (snapshot_state_ != NULL && !snapshot_spare(memory, pages)) {
        munmap(memory, size);
        return NULL;
    }
    return memory;
}

void *snapshot_lasting_memory(size_t size) {
    snapshot_state *s = snapshot_state_;
    if (s == NULL || s->numbers.way != SNAPSHOT_WAY_FORK) {
        return snapshot_engine_memory(size);
    }
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || s->n_lasting == SNAPSHOT_MAX_LOOSE) {
        return NULL;
    }
    s->lasting[s->n_lasting++] = (snapshot_area){memory, (char *)memory + size};
    return memory;
}

/* Switches to the engine's stack. It is used from its top each time: no caller returns to it. */
void snapshot_on_engine_stack(void (*step)(void)) {
    snapshot_state *s = snapshot_state_;
    s->engine.uc_stack.ss_sp = s->engine_stack;
    s->engine.uc_stack.ss_size = s->engine_stack_size;
    s->engine.uc_link = NULL;
    makecontext(&s->engine, step, 0);
    setcontext(&s->engine);
    _exit(EXIT_FAILURE);
}

/* Memory is neither in the old nor in the new state. The server replaces the process. */
void snapshot_die(const snapshot_state *s) {
    static const char prefix[] = "howdah-php: snapshot: ";
    (void)!write(STDERR_FILENO, prefix, sizeof prefix - 1);
    (void)!write(STDERR_FILENO, s->reason, strlen(s->reason));
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(EXIT_FAILURE);
}
