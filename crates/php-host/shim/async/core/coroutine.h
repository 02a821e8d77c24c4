/* Coroutines of async mode: pieces of PHP that wait without holding the process. Each runs on a pooled context of PHP's
 * own fiber machinery (Zend/zend_fibers.c), so PHP's VM stack, bailouts and observers go with it.
 *
 * All run in one thread, one at a time, and change hands only in coroutine_wait() and when they end: code between two
 * waits needs no locks. The scheduler (loop.c) runs in the worker's main context. */
#ifndef HOWDAH_COROUTINE_H
#define HOWDAH_COROUTINE_H

#include "shim.h"

#include <zend_fibers.h>

/* coroutine.heap_index without a timer. */
#define COROUTINE_NO_TIMER UINT32_MAX
/* A wait without an end. */
#define COROUTINE_FOREVER UINT64_MAX

typedef struct async_request async_request;
typedef struct coroutine coroutine;
typedef struct coroutine_stack coroutine_stack;
typedef struct coroutine_object coroutine_object;

typedef enum coroutine_state {
    COROUTINE_READY,   /* in the queue of those that go on */
    COROUTINE_RUNNING, /* the current one */
    COROUTINE_WAITING, /* until it is woken */
    COROUTINE_ENDED,
} coroutine_state;

/* Why a wait is over. */
typedef enum coroutine_woken {
    COROUTINE_WOKEN,
    COROUTINE_TIMED_OUT,
    COROUTINE_CANCELLED, /* and every later wait of it, except under a shield */
} coroutine_woken;

struct coroutine {
    uint64_t id;
    coroutine_state state;
    coroutine_woken woken;
    /* Its body; owns nothing but itself. */
    void (*body)(coroutine *self);
    /* The PHP function of one that a script started. */
    zval function;
    /* The request with its superglobals, headers and output; NULL without one. */
    async_request *request;
    /* Its object in PHP, which holds no reference back; NULL until a script asks for it. */
    coroutine_object *object;
    /* Functions to call when it ends, last one first; IS_UNDEF: none. */
    zval at_end;
    /* Connections of pools that it has and must give back (async/pools/pools.c). */
    struct pooled *connections;

    coroutine_stack *stack;
    /* Where it goes on: its own context, or that of a Fiber which the script runs inside it. */
    zend_fiber_context *resume;
    /* Its innermost frame of PHP while it waits. */
    zend_execute_data *frame;
    coroutine *next_ready;
    coroutine *older, *younger; /* list of all that have not ended */
    uint64_t wake_at;           /* nanoseconds of the monotonic clock */
    uint32_t heap_index;
    const char *waits_for; /* for people: "poll", "sleep", "park" … */
    /* Nothing outside of PHP will wake it: no time, no descriptor, no other process. */
    bool waits_for_php;

    /* Waits in a method of Howdah\Coroutine, which can tell of a deadlock; for the end of another one. */
    bool may_be_failed;
    bool joins;
    bool deadlocked;

    bool permit; /* woken before it waited */
    bool cancelled;
    bool cancel_thrown;
    bool concurrent_use;  /* ConcurrentUseError is to be thrown */
    bool prints_for_main; /* is adding to the buffers of its request's main coroutine */
    /* With concurrent_use: where the coroutine stood that has the descriptor. */
    zend_string *others_stack;
    unsigned shields;
    zend_string *cancel_reason;
    /* Coroutines that wait for the end of this one. */
    coroutine *joiner;
    coroutine *next_joiner;

    /* The engine's state while it waits (coroutine_state.c). */
    unsigned char *engine;
};

/* Coroutines can be started in this process. */
extern bool coroutine_available;
/* The running coroutine; NULL in the worker's main context. */
extern coroutine *coroutine_current;
/* Above 0: what runs may not wait, hooks really block (compiler, autoloader, collector). */
extern unsigned coroutine_pinned;

/* Makes one that will run `body`; it belongs to `request` (may be NULL). Queued at once. NULL without memory. */
coroutine *coroutine_start(void (*body)(coroutine *self), async_request *request);
/* Runs one until it waits or ends. Only from the scheduler. */
void coroutine_enter(coroutine *self);
/* True if the running code may wait without blocking the process. */
bool coroutine_may_wait(void);
/* The current one waits until coroutine_wake(), coroutine_cancel() or the time (nanoseconds of the monotonic clock). */
coroutine_woken coroutine_wait(uint64_t until, const char *what);
/* Makes a waiting one ready. No effect on one that does not wait. */
void coroutine_wake(coroutine *other, coroutine_woken why);
/* Its waits fail from now on, and Howdah\CancelledException is thrown in it. `reason` may be NULL. */
void coroutine_cancel(coroutine *other, zend_string *reason);
/* Lets the others run once. */
void coroutine_yield(void);
/* The next that is ready, taken from the queue; NULL: none. */
coroutine *coroutine_take_ready(void);
bool coroutine_any_ready(void);
/* All that have not ended, youngest first. */
coroutine *coroutine_youngest(void);
/* Where the address of the youngest stands, the same in all processes of a pool (process/remote_stack.c). */
const coroutine *const *coroutine_youngest_place(void);
uint32_t coroutine_count(void);
/* Puts PHP right after a bailout that ended in the current coroutine. */
void coroutine_after_bailout(void);
/* Runs `step(argument)`; false if a bailout ended it. */
bool coroutine_guarded(void (*step)(void *argument), void *argument);
/* Deals with an exception that leaves a coroutine. */
void async_exit_or_report(void);
/* Frees the stacks that no coroutine uses. */
void coroutine_trim(void);

#endif
