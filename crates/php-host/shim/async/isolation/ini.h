/* Settings that a request has changed. */
#ifndef HOWDAH_ASYNC_ISOLATION_INI_H
#define HOWDAH_ASYNC_ISOLATION_INI_H

#include "shim.h"

typedef struct async_ini_change async_ini_change;
/* Makes all settings changed until now the worker's own. */
void async_ini_startup(void);
/* Reverts and returns the changes of the current request; applies returned changes again. */
async_ini_change *async_ini_take(void);
void async_ini_apply(async_ini_change *changes);
/* Reverts the changes for good. */
void async_ini_forget(void);
/* Returns error_reporting for a new coroutine from the current settings: PHP's own copy still belongs to another
 * coroutine then. */
int async_ini_error_reporting(void);

#endif
