#include "async/hooks/waits.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/tools/audit.h"

/* True in the thread that runs PHP; libraries have other threads. */
static __thread bool php_thread;

bool async_may_wait(void) {
    return php_thread && coroutine_may_wait();
}

bool async_owns_descriptors(void) {
    return php_thread && !shim.script_child;
}

bool async_may_sleep(void) {
    if (php_thread && coroutine_pinned > 0) {
        async_audit_blocked();
    }
    return async_may_wait();
}

void async_waits_begin(void) {
    php_thread = true;
}
