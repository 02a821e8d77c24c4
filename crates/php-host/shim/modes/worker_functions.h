/* The functions for scripts that loop, and those with FrankenPHP's names. */
#ifndef HOWDAH_WORKER_FUNCTIONS_H
#define HOWDAH_WORKER_FUNCTIONS_H

#include "shim.h"

/* Registers functions and constants, while PHP's modules start. */
void shim_worker_functions_startup(int module_number);

#endif
