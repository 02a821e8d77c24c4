/* The functions that replace libc's in the libraries PHP uses. Each behaves as the one it replaces, except that in a
 * coroutine a wait lets others run, and can also fail: if it is cancelled, or conflicts with another coroutine's wait.
 * Outside of coroutines, in other threads and in processes that a script forked, each calls the original. */
#ifndef HOWDAH_ASYNC_HOOKS_HOOKS_H
#define HOWDAH_ASYNC_HOOKS_HOOKS_H

#include "shim.h"

/* Replaces the functions in the loaded libraries. Called when a worker begins to serve, never in another mode. */
void async_hooks_install(void);

#endif
