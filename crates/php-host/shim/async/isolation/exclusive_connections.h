/* One connection, one coroutine at a time. */
#ifndef HOWDAH_ASYNC_ISOLATION_EXCLUSIVE_CONNECTIONS_H
#define HOWDAH_ASYNC_ISOLATION_EXCLUSIVE_CONNECTIONS_H

#include "shim.h"
#include "async/core/coroutine.h"

/* Guards the objects of drivers. Called while only PHP's modules are loaded. False if that is impossible. */
bool async_exclusive_install(void);
/* Replaces one of PHP's functions; the replacement finds the original with async_wrapped(). */
void async_wrap(zend_function *function, zif_handler wrapper);
zif_handler async_wrapped(const zend_execute_data *execute_data);
/* Called when a coroutine was ended in the middle of a driver's method. */
void async_exclusive_forget(const coroutine *self);

#endif
