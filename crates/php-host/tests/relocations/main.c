/* Shows that async/hooks/hooks.c finds and replaces the imports of a library whose name identifies it as PHP's, and no
 * others, on the processor this was compiled for. No PHP code runs. See scripts/test-relocations.sh. */
#include "async/core/coroutine.h"
#include "async/hooks/hooks.h"
#include "async/hooks/io.h"
#include "async/tools/audit.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define HOOKED 42

int call_poll(void);
unsigned call_taken_address(void);
int other_poll(void);

/* Stand-ins for the parts of PHP and of the shim that async/hooks/hooks.c needs. */
php_core_globals core_globals;
unsigned coroutine_pinned;
shim_state shim;
bool coroutine_may_wait(void) {
    return true;
}
void async_audit_blocked(void) {
}

int async_poll(struct pollfd *fds, nfds_t count, int timeout) {
    return HOOKED;
}
unsigned async_sleep(unsigned seconds) {
    return HOOKED;
}

/* The others are never called here: only their addresses are used. */
#define UNUSED(name)                                                                                                   \
    __attribute__((weak)) void name##_unused(void) __asm__(#name);                                                     \
    void name##_unused(void) {                                                                                         \
        _exit(9);                                                                                                      \
    }
UNUSED(async_select)
UNUSED(async_recv)
UNUSED(async_recvfrom)
UNUSED(async_recvmsg)
UNUSED(async_send)
UNUSED(async_sendto)
UNUSED(async_sendmsg)
UNUSED(async_read)
UNUSED(async_write)
UNUSED(async_connect)
UNUSED(async_accept)
UNUSED(async_close)
UNUSED(async_usleep)
UNUSED(async_nanosleep)
UNUSED(async_flock)
UNUSED(async_waitpid)
UNUSED(async_wait4)
UNUSED(async_popen)
UNUSED(async_pclose)
UNUSED(async_getaddrinfo)
UNUSED(async_getnameinfo)
UNUSED(async_gethostbyname_r)

static int failures;

static void expect(const char *what, int expected, int got) {
    if (expected != got) {
        printf("%s: %d, not %d\n", what, got, expected);
        failures++;
    }
}

int main(void) {
    expect("poll before", 0, call_poll());
    expect("a taken address before", 0, (int)call_taken_address());
    async_hooks_install();
    expect("poll", HOOKED, call_poll());
    expect("a taken address", HOOKED, (int)call_taken_address());
    expect("poll of another library", 0, other_poll());
    expect("poll of the program", 0, poll(NULL, 0, 0));
    return failures;
}
