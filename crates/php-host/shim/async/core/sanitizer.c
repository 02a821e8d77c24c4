/* Notifies the address sanitizer of the current stack whenever a coroutine begins or continues; otherwise it would
 * report the frames of one as overflows of another. Only in builds of `make test-asan`. The scripts' own Fibers switch
 * inside PHP without notice, so their stacks count as the coroutine's. */
#include "async/core/sanitizer.h"

#include "shim.h"

#ifdef __SANITIZE_ADDRESS__
#include <dlfcn.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

/* First fields of PHP's structure of a stack (Zend/zend_fibers.c). */
typedef struct stack_bounds {
    const void *bottom;
    size_t size;
} stack_bounds;

static stack_bounds main_stack;

/* Leak checks are off: PHP keeps what it loads and manages its own memory. Frames are not moved to the heap, because
 * fibers break that. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=1:handle_segv=1:allocator_may_return_null=1";
}

/* PHP loads extensions with RTLD_DEEPBIND, which would give them a different malloc() from the rest of the process. */
__attribute__((visibility("default"))) void *dlopen(const char *file, int mode) {
    void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return real(file, mode & ~RTLD_DEEPBIND);
}

static stack_bounds bounds_of(const zend_fiber_context *context) {
    return context->stack != NULL ? *(const stack_bounds *)context->stack : main_stack;
}

void shim_sanitizer_begin(void) {
    __sanitizer_finish_switch_fiber(NULL, &main_stack.bottom, &main_stack.size);
}

void shim_sanitizer_switch(zend_fiber_transfer *transfer) {
    void *fake_stack;
    stack_bounds next = bounds_of(transfer->context);
    __sanitizer_start_switch_fiber(&fake_stack, next.bottom, next.size);
    zend_fiber_switch_context(transfer);
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
}

void shim_sanitizer_forget(const zend_fiber_context *context) {
    stack_bounds stack = bounds_of(context);
    __asan_unpoison_memory_region(stack.bottom, stack.size);
}
#endif
