/* Replaces functions of libc in the libraries PHP uses; see import_hooks.c. */
#ifndef HOWDAH_IMPORT_HOOKS_H
#define HOWDAH_IMPORT_HOOKS_H

#include "shim.h"

typedef struct import_hook {
    const char *name;
    void *function; /* with the signature of the function it replaces */
} import_hook;

/* Installs hooks in the loaded libraries through which PHP code performs I/O. Calling it again reaches libraries that
 * were loaded since. */
void import_hooks_install(const import_hook *hooks, size_t count);
/* Installs hooks in the loaded libraries whose file name begins with `beginning`; an empty one matches all. */
void import_hooks_install_in(const char *beginning, const import_hook *hooks, size_t count);

#endif
