/* Creates, runs, parks and ends coroutines. See coroutine.h for the rules.
 *
 * A context (C stack, VM stack, the engine's fiber context and the coroutine itself) is taken from a pool, runs one
 * coroutine to its end and is returned. Creating one costs three system calls; taking one from the pool costs no system
 * call and no allocation. The last one returned, whose memory is warmest, is taken first. A returned context is
 * suspended inside stack_main(), owns only the first page of its VM stack, and may be destroyed as it is. */
#include "async/core/coroutine.h"

#include "shim.h"
#include "async/core/coroutine_class.h"
#include "async/core/coroutine_state.h"
#include "async/core/sanitizer.h"
#include "async/core/timers.h"
#include "async/core/worker.h"
#include "async/isolation/exclusive_connections.h"
#include "async/isolation/half_linked.h"
#include "async/isolation/ini.h"
#include "async/isolation/request_globals.h"
#include "async/pools/pools.h"
#include "modes/script_loop.h"

#include <stdlib.h>
#include <string.h>
#include <zend_gc.h>

/* Address space reserved for a context, with a guard page below; the kernel allocates only pages that are used. PHP 8.2
 * does not check the depth of recursion, so an overflow kills the worker, as in a thread of another server. */
#define STACK_SIZE ((size_t)512 * 1024)
/* First page of a coroutine's VM stack; PHP adds more when a script needs them. */
#define VM_PAGE ((size_t)8 * 1024)
/* Idle contexts kept. */
#define IDLE_STACKS 256

struct coroutine_stack {
    coroutine job;
    zend_fiber_context context;
    /* First page of the VM stack, kept from one job to the next. */
    zend_vm_stack vm_page;
    coroutine_stack *next_idle;
    unsigned char engine[];
};

bool coroutine_available;
coroutine *coroutine_current;
unsigned coroutine_pinned;

/* Function of the lowest frame of each coroutine, so that calls and exceptions find a caller. */
static zend_internal_function root_function = {.type = ZEND_INTERNAL_FUNCTION};

static coroutine_stack *idle_stacks;
static uint32_t idle_count;
static coroutine_stack *starting;
static coroutine *ready_first, *ready_last;
static coroutine *youngest;
static uint32_t count;
static uint64_t last_id;
/* The worker's main context, where the scheduler runs. */
static zend_fiber_context *scheduler;

static void push_ready(coroutine *self) {
    self->state = COROUTINE_READY;
    self->next_ready = NULL;
    if (ready_last != NULL) {
        ready_last->next_ready = self;
    } else {
        ready_first = self;
    }
    ready_last = self;
}

coroutine *coroutine_take_ready(void) {
    coroutine *first = ready_first;
    if (first != NULL) {
        ready_first = first->next_ready;
        if (ready_first == NULL) {
            ready_last = NULL;
        }
    }
    return first;
}

bool coroutine_any_ready(void) {
    return ready_first != NULL;
}

coroutine *coroutine_youngest(void) {
    return youngest;
}

const coroutine *const *coroutine_youngest_place(void) {
    return (const coroutine *const *)&youngest;
}

uint32_t coroutine_count(void) {
    return count;
}

/* --- contexts --- */

static void root_frame(void) {
    zend_vm_stack page = EG(vm_stack);
    while (page->prev != NULL) {
        page = page->prev;
    }
    zend_execute_data *frame = (zend_execute_data *)ZEND_VM_STACK_ELEMENTS(page);
    memset(frame, 0, sizeof *frame);
    frame->func = (zend_function *)&root_function;
    EG(current_execute_data) = frame;
}

static void vm_stack_begin(coroutine_stack *stack) {
    if (stack->vm_page == NULL) {
        stack->vm_page = zend_vm_stack_new_page(VM_PAGE, NULL);
    }
    zend_vm_stack page = stack->vm_page;
    EG(vm_stack) = page;
    EG(vm_stack_top) = ZEND_VM_STACK_ELEMENTS(page) + ZEND_CALL_FRAME_SLOT;
    EG(vm_stack_end) = page->end;
    EG(vm_stack_page_size) = VM_PAGE;
    EG(jit_trace_num) = 0;
    root_frame();
}

static void vm_stack_end(void) {
    zend_vm_stack page = EG(vm_stack);
    while (page->prev != NULL) {
        zend_vm_stack before = page->prev;
        efree(page);
        page = before;
    }
    EG(vm_stack) = NULL;
}

bool coroutine_guarded(void (*step)(void *argument), void *argument) {
    volatile bool finished = false;
    zend_try {
        step(argument);
        finished = true;
    }
    zend_catch {
        coroutine_after_bailout();
    }
    zend_end_try();
    return finished;
}

/* Handles an exception that leaves a coroutine: exit() needs nothing more, CancelledException of a cancelled coroutine
 * is dropped, everything else is reported as PHP does it at the end of a script. */
void async_exit_or_report(void) {
    if (EG(exception) == NULL) {
        return;
    }
    zend_object *exception = EG(exception);
    bool expected = zend_is_unwind_exit(exception) || zend_is_graceful_exit(exception);
    if (!expected && coroutine_current != NULL && coroutine_current->cancelled) {
        expected = zend_string_equals_literal_ci(exception->ce->name, "Howdah\\CancelledException");
    }
    if (expected) {
        zend_clear_exception();
        if (SHIM_RAN_OUT_OF_MEMORY()) {
            shim_compat_forget_out_of_memory();
            coroutine_after_bailout();
        }
    } else {
        shim_loop_report_exception();
    }
}

static void run_body(void *self) {
    ((coroutine *)self)->body(self);
}

/* Ends a coroutine and wakes its joiners. Its object lives on only while it is referenced elsewhere. */
static void end(coroutine *self) {
    self->state = COROUTINE_ENDED;
    count--;
    if (self->younger != NULL) {
        self->younger->older = self->older;
    } else {
        youngest = self->older;
    }
    if (self->older != NULL) {
        self->older->younger = self->younger;
    }
    for (coroutine *joiner = self->joiner; joiner != NULL;) {
        coroutine *next = joiner->next_joiner;
        joiner->next_joiner = NULL;
        coroutine_wake(joiner, COROUTINE_WOKEN);
        joiner = next;
    }
    /* Destructors may throw: while an exception is pending, no more PHP code could be called here. */
    zval_ptr_dtor(&self->function);
    async_exit_or_report();
    zval_ptr_dtor(&self->at_end);
    async_exit_or_report();
    if (self->cancel_reason != NULL) {
        zend_string_release(self->cancel_reason);
    }
    if (self->others_stack != NULL) {
        zend_string_release(self->others_stack);
    }
    coroutine_object_release(self);
    async_exit_or_report();
}

/* The main function of each context. Runs its job, returns the context to the pool and waits in the switch to the
 * scheduler for the next job. */
static ZEND_STACK_ALIGNED void stack_main(zend_fiber_transfer *transfer) {
    (void)transfer;
    coroutine_stack *stack = starting;
    shim_sanitizer_begin();
    SHIM_USE_STACK_LIMITS(stack->context.stack);
    for (;;) {
        coroutine *self = &stack->job;
        EG(vm_stack) = NULL;
        EG(bailout) = NULL;
        EG(error_reporting) = async_ini_error_reporting();
        coroutine_state_begin();
        vm_stack_begin(stack);
        coroutine_guarded(run_body, self);
        coroutine_guarded((void (*)(void *))end, self);
        /* Also after a fatal error in end(): the next coroutine in this context is a different one. */
        async_pools_let_go(self);
        coroutine_object_detach(self);
        coroutine_state_end();
        vm_stack_end();
        stack->next_idle = idle_stacks;
        idle_stacks = stack;
        idle_count++;
        zend_fiber_transfer to_scheduler = {.context = scheduler};
        ZVAL_NULL(&to_scheduler.value);
        shim_sanitizer_switch(&to_scheduler);
    }
}

static coroutine_stack *take_stack(void) {
    coroutine_stack *stack = idle_stacks;
    if (stack != NULL) {
        idle_stacks = stack->next_idle;
        idle_count--;
        return stack;
    }
    stack = calloc(1, sizeof *stack + coroutine_state_size());
    if (stack == NULL) {
        return NULL;
    }
    /* PHP reads the name of the function that it reports an error for; it treats an empty name as none. */
    root_function.function_name = ZSTR_EMPTY_ALLOC();
    /* The meaning of the returned value changed with 8.3; the stack is set only on success. */
    zend_fiber_init_context(&stack->context, &root_function, stack_main, STACK_SIZE);
    if (stack->context.stack == NULL) {
        zend_clear_exception();
        free(stack);
        return NULL;
    }
    return stack;
}

void coroutine_trim(void) {
    while (idle_count > IDLE_STACKS) {
        coroutine_stack *stack = idle_stacks;
        idle_stacks = stack->next_idle;
        idle_count--;
        shim_sanitizer_forget(&stack->context);
        zend_fiber_destroy_context(&stack->context);
        if (stack->vm_page != NULL) {
            efree(stack->vm_page);
        }
        free(stack);
    }
}

/* --- life --- */

coroutine *coroutine_start(void (*body)(coroutine *self), async_request *request) {
    coroutine_stack *stack = take_stack();
    if (stack == NULL) {
        return NULL;
    }
    coroutine *self = &stack->job;
    memset(self, 0, sizeof *self);
    self->stack = stack;
    self->engine = stack->engine;
    self->id = ++last_id;
    self->body = body;
    self->request = request;
    self->heap_index = COROUTINE_NO_TIMER;
    self->resume = &stack->context;
    self->older = youngest;
    if (youngest != NULL) {
        youngest->younger = self;
    }
    youngest = self;
    count++;
    push_ready(self);
    return self;
}

void coroutine_enter(coroutine *self) {
    scheduler = EG(current_fiber_context);
    self->state = COROUTINE_RUNNING;
    starting = self->stack;
    /* Swapping settings changes error_reporting; the switch restores each coroutine's own. */
    int error_reporting = EG(error_reporting);
    async_request_load(self->request);
    coroutine_current = self;
    zend_fiber_transfer transfer = {.context = self->resume};
    ZVAL_NULL(&transfer.value);
    shim_sanitizer_switch(&transfer);
    EG(error_reporting) = error_reporting;
    coroutine_current = NULL;
}

bool coroutine_may_wait(void) {
    return coroutine_current != NULL && coroutine_pinned == 0 && !shim.script_child;
}

static bool is_cancelled(const coroutine *self) {
    return self->cancelled && self->shields == 0;
}

/* Switches from the coroutine's own context, or that of a Fiber inside it, to the scheduler and back. */
static void leave_to_scheduler(coroutine *self) {
    self->resume = EG(current_fiber_context);
    self->frame = EG(current_execute_data);
    coroutine_state_save(self->engine);
    /* The scheduler calls into PHP, too. */
    EG(exception) = NULL;
    EG(prev_exception) = NULL;
    /* PHP forbids its fibers to leave destructors, ticks and signal handlers because of its collector, which never
     * switches here. The ban is one counter for the process, but other coroutines are not in a destructor. */
    unsigned blocked = 0;
    for (; zend_fiber_switch_blocked(); blocked++) {
        zend_fiber_switch_unblock();
    }
    zend_fiber_transfer transfer = {.context = scheduler};
    ZVAL_NULL(&transfer.value);
    shim_sanitizer_switch(&transfer);
    for (; blocked > 0; blocked--) {
        zend_fiber_switch_block();
    }
    coroutine_state_load(self->engine);
    /* The engine has one interrupt flag for the process: another coroutine may have consumed it in the meantime. */
    if (self->concurrent_use || (is_cancelled(self) && !self->cancel_thrown)) {
        async_interrupt();
    }
}

coroutine_woken coroutine_wait(uint64_t until, const char *what) {
    coroutine *self = coroutine_current;
    if (is_cancelled(self)) {
        async_interrupt();
        return COROUTINE_CANCELLED;
    }
    self->state = COROUTINE_WAITING;
    self->waits_for = what;
    self->wake_at = until;
    if (until != COROUTINE_FOREVER) {
        async_timer_add(self);
    }
    leave_to_scheduler(self);
    self->waits_for = NULL;
    self->waits_for_php = false;
    return self->woken;
}

void coroutine_wake(coroutine *other, coroutine_woken why) {
    if (other->state != COROUTINE_WAITING) {
        return;
    }
    async_timer_remove(other);
    other->woken = why;
    push_ready(other);
}

void coroutine_yield(void) {
    coroutine *self = coroutine_current;
    push_ready(self);
    leave_to_scheduler(self);
}

void coroutine_cancel(coroutine *other, zend_string *reason) {
    if (other->cancelled || other->state == COROUTINE_ENDED) {
        return;
    }
    other->cancelled = true;
    if (reason != NULL) {
        other->cancel_reason = zend_string_copy(reason);
    }
    if (other->shields > 0) {
        return;
    }
    if (other == coroutine_current) {
        async_interrupt();
    } else {
        coroutine_wake(other, COROUTINE_CANCELLED);
    }
}

/* The script's frames are gone without having been unwound, so everything they held is leaked: the worker is replaced.
 * This function repairs the state that would break other coroutines. */
void coroutine_after_bailout(void) {
    gc_protect(false);
    CG(unclean_shutdown) = 0;
    coroutine_pinned = 0;
    /* Waiting coroutines have removed theirs. */
    while (zend_fiber_switch_blocked()) {
        zend_fiber_switch_unblock();
    }
    root_frame();
    if (EG(exception) != NULL) {
        zend_object *exception = EG(exception);
        EG(exception) = NULL;
        OBJ_RELEASE(exception);
    }
    async_mend_half_linked_classes();
    async_exclusive_forget(coroutine_current);
    async_set_memory_limit();
    async_drain();
}
