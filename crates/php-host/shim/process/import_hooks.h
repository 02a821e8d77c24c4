/* Replaces functions of libc in the libraries PHP uses; see import_hooks.c. */
#ifndef HOWDAH_IMPORT_HOOKS_H
#define HOWDAH_IMPORT_HOOKS_H

#include "shim.h"

typedef struct import_hook {
    const char *name;
    void *function; /* with the signature of what it stands for */
} import_hook;

/* In the libraries that PHP code talks to the world through, those that are loaded now. Doing it again reaches those
 * that were loaded since. */
void import_hooks_install(const import_hook *hooks, size_t count);
/* In the loaded libraries whose file has a name with this beginning; an empty one is that of all. */
void import_hooks_install_in(const char *beginning, const import_hook *hooks, size_t count);

#endif
