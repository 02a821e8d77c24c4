/* One connection, one coroutine at a time. */
#ifndef HOWDAH_ASYNC_ISOLATION_EXCLUSIVE_CONNECTIONS_H
#define HOWDAH_ASYNC_ISOLATION_EXCLUSIVE_CONNECTIONS_H

#include "shim.h"
#include "async/core/coroutine.h"

/* Guards the objects of drivers. While PHP's modules are the only code there is. False: none can be. */
bool async_exclusive_install(void);
/* Replaces one of PHP's functions, which the new one finds with async_wrapped(). */
void async_wrap(zend_function *function, zif_handler wrapper);
zif_handler async_wrapped(const zend_execute_data *execute_data);
/* A coroutine was ended in the middle of a driver's method. */
void async_exclusive_forget(const coroutine *self);

#endif
