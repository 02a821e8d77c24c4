/* Annotations for the address sanitizer in a process with many stacks (`make test-asan`). Without the sanitizer they do
 * nothing, or are PHP's own switch. */
#ifndef HOWDAH_SANITIZER_H
#define HOWDAH_SANITIZER_H

#include "shim.h"

#include <zend_fibers.h>

#ifdef __SANITIZE_ADDRESS__

/* Switches to a context and returns when another one switches back. */
void shim_sanitizer_switch(zend_fiber_transfer *transfer);
/* Called when a context begins, from the worker's main one. */
void shim_sanitizer_begin(void);
/* Called before a context's stack is freed while it still has frames. */
void shim_sanitizer_forget(const zend_fiber_context *context);

#else

#define shim_sanitizer_switch(transfer) zend_fiber_switch_context(transfer)
#define shim_sanitizer_begin() ((void)0)
#define shim_sanitizer_forget(context) ((void)(context))

#endif
#endif
