/* Settings that depend on the request: .htaccess files, .user.ini files, [HOST=] and [PATH=]. */
#ifndef HOWDAH_SAPI_USER_INI_H
#define HOWDAH_SAPI_USER_INI_H

#include "shim.h"

/* Called before PHP reads the request's body, because rules may set post_max_size. */
void shim_request_settings(void);
/* Called after the request, in modes where the script keeps its settings. */
void shim_request_settings_end(void);
int shim_sapi_activate(void);
#define SHIM_ABSENT_FILES 4096
/* Remembers directories without .user.ini files in `memory`: SHIM_ABSENT_FILES bytes, filled with zeros. NULL: they are
 * not remembered. */
void shim_user_ini_remember_absent(void *memory);
void shim_user_ini_shutdown(void);

#endif
