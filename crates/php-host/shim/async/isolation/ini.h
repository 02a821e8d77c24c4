/* Settings that a request has changed. */
#ifndef HOWDAH_ASYNC_ISOLATION_INI_H
#define HOWDAH_ASYNC_ISOLATION_INI_H

#include "shim.h"

typedef struct async_ini_change async_ini_change;
/* Settings changed until now are the worker's own. */
void async_ini_startup(void);
/* Takes the changes of the request in place back and notes them; makes noted changes again. */
async_ini_change *async_ini_take(void);
void async_ini_apply(async_ini_change *changes);
/* Takes the changes back for good. */
void async_ini_forget(void);
/* Error reporting of a new coroutine, by the settings in place: PHP's copy is its neighbor's then. */
int async_ini_error_reporting(void);

#endif
