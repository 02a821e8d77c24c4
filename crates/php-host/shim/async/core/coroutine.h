/* Coroutines of async mode: PHP code that can wait without blocking the process. Each runs on a pooled context of PHP's
 * own fiber machinery (Zend/zend_fibers.c), so PHP's VM stack, bailouts and observers move with it.
 *
 * All run in one thread, one at a time. They switch only in coroutine_wait(), in coroutine_yield() and when they end: C
 * code between these needs no locks. PHP code can also be interrupted between two instructions if howdah.time_slice is
 * set. The scheduler (loop.c) runs in the worker's main context. */
#ifndef HOWDAH_COROUTINE_H
#define HOWDAH_COROUTINE_H

#include "shim.h"

#include <zend_fibers.h>

/* Value of coroutine.heap_index without a timer. */
#define COROUTINE_NO_TIMER UINT32_MAX
/* A wait without a timeout. */
#define COROUTINE_FOREVER UINT64_MAX

typedef struct async_request async_request;
typedef struct coroutine coroutine;
typedef struct coroutine_stack coroutine_stack;
typedef struct coroutine_object coroutine_object;

typedef enum coroutine_state {
    COROUTINE_READY,   /* in the queue of ready coroutines */
    COROUTINE_RUNNING, /* the current one */
    COROUTINE_WAITING, /* parked until it is woken */
    COROUTINE_ENDED,
} coroutine_state;

/* Reason for the end of a wait. */
typedef enum coroutine_woken {
    COROUTINE_WOKEN,
    COROUTINE_TIMED_OUT,
    COROUTINE_CANCELLED, /* also the result of each later wait, except under a shield */
} coroutine_woken;

struct coroutine {
    uint64_t id;
    coroutine_state state;
    coroutine_woken woken;
    /* The coroutine's body. */
    void (*body)(coroutine *self);
    /* The PHP function of a coroutine that a script started. */
    zval function;
    /* The request with its superglobals, headers and output, or NULL. */
    async_request *request;
    /* The PHP object of the coroutine, which holds no reference back; NULL until a script needs it. */
    coroutine_object *object;
    /* Functions to call when the coroutine ends, last one first; IS_UNDEF: none. */
    zval at_end;
    /* Pool connections that the coroutine has and must return (async/pools/pools.c). */
    struct pooled *connections;

    coroutine_stack *stack;
    /* The context to resume: its own, or that of a Fiber which the script runs inside it. */
    zend_fiber_context *resume;
    /* The innermost PHP frame while it waits. */
    zend_execute_data *frame;
    coroutine *next_ready;
    coroutine *older, *younger; /* list of all that have not ended */
    uint64_t wake_at;           /* nanoseconds of the monotonic clock */
    uint32_t heap_index;
    const char *waits_for; /* a label for diagnostics: "poll", "sleep", "park" … */
    /* Only PHP code can wake it: no timer, no descriptor, no other process. */
    bool waits_for_php;

    /* It waits in a method of Howdah\Coroutine, which can report a deadlock; it waits for another coroutine's end. */
    bool may_be_failed;
    bool joins;
    bool deadlocked;

    bool permit; /* woken before it waited */
    bool cancelled;
    bool cancel_thrown;
    bool concurrent_use;  /* ConcurrentUseError must be thrown */
    bool prints_for_main; /* it is writing to the buffers of its request's main coroutine */
    /* With concurrent_use: the stack of the coroutine that is using the descriptor. */
    zend_string *others_stack;
    unsigned shields;
    zend_string *cancel_reason;
    /* Coroutines that wait for the end of this one. */
    coroutine *joiner;
    coroutine *next_joiner;

    /* The engine's state while the coroutine waits (coroutine_state.c). */
    unsigned char *engine;
};

/* True if coroutines can be started in this process. */
extern bool coroutine_available;
/* The running coroutine; NULL in the worker's main context. */
extern coroutine *coroutine_current;
/* Above 0: the running code must not wait, and hooked calls block the process (compiler, autoloader, collector). */
extern unsigned coroutine_pinned;

/* Creates and queues a coroutine that will run `body`; it belongs to `request` (may be NULL). Returns NULL without
 * memory. */
coroutine *coroutine_start(void (*body)(coroutine *self), async_request *request);
/* Runs one until it waits or ends. Only for the scheduler. */
void coroutine_enter(coroutine *self);
/* True if the running code may wait without blocking the process. */
bool coroutine_may_wait(void);
/* Parks the current coroutine until coroutine_wake(), coroutine_cancel() or the time (nanoseconds of the monotonic
 * clock). */
coroutine_woken coroutine_wait(uint64_t until, const char *what);
/* Makes a waiting coroutine ready. No effect on one that is not waiting. */
void coroutine_wake(coroutine *other, coroutine_woken why);
/* Makes its waits fail from now on and throws Howdah\CancelledException in it. `reason` may be NULL. */
void coroutine_cancel(coroutine *other, zend_string *reason);
/* Lets the other ready coroutines run once. */
void coroutine_yield(void);
/* Takes the next ready coroutine from the queue; NULL: none. */
coroutine *coroutine_take_ready(void);
bool coroutine_any_ready(void);
/* Returns the youngest of all coroutines that have not ended; `older` leads to the others. */
coroutine *coroutine_youngest(void);
/* Returns the address of the pointer to the youngest, which is the same in all processes of a pool
 * (process/remote_stack.c). */
const coroutine *const *coroutine_youngest_place(void);
uint32_t coroutine_count(void);
/* Repairs PHP's state after a bailout that ended in the current coroutine. */
void coroutine_after_bailout(void);
/* Runs `step(argument)`; false if a bailout ended it. */
bool coroutine_guarded(void (*step)(void *argument), void *argument);
/* Handles an exception that leaves a coroutine. */
void async_exit_or_report(void);
/* Frees unused stacks above the number that is kept. */
void coroutine_trim(void);

#endif
