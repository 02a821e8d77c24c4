/* The functions of libc that async mode replaces in the libraries where PHP code waits (process/import_hooks.c), so
 * that a wait lets other requests run. */
#include "async/hooks/hooks.h"

#include "shim.h"
#include "async/hooks/file_locks.h"
#include "async/hooks/io.h"
#include "async/hooks/names.h"
#include "async/hooks/process.h"
#include "async/hooks/waits.h"
#include "process/import_hooks.h"

static const import_hook hooks[] = {
    {"poll", async_poll},
    {"select", async_select},
    {"recv", async_recv},
    {"recvfrom", async_recvfrom},
    {"recvmsg", async_recvmsg},
    {"send", async_send},
    {"sendto", async_sendto},
    {"sendmsg", async_sendmsg},
    {"read", async_read},
    {"write", async_write},
    {"connect", async_connect},
    {"accept", async_accept},
    {"close", async_close},
    {"sleep", async_sleep},
    {"usleep", async_usleep},
    {"nanosleep", async_nanosleep},
    {"flock", async_flock},
    {"waitpid", async_waitpid},
    {"wait4", async_wait4},
    {"popen", async_popen},
    {"pclose", async_pclose},
    {"getaddrinfo", async_getaddrinfo},
    {"getnameinfo", async_getnameinfo},
    {"gethostbyname_r", async_gethostbyname_r},
};

void async_hooks_install(void) {
    async_waits_begin();
    import_hooks_install(hooks, sizeof hooks / sizeof *hooks);
}
