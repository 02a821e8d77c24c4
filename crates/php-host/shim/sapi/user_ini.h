/* Settings that depend on the request: .htaccess files, .user.ini files, [HOST=] and [PATH=]. */
#ifndef HOWDAH_SAPI_USER_INI_H
#define HOWDAH_SAPI_USER_INI_H

#include "shim.h"

/* Before PHP reads the request's body: post_max_size is among what rules set. */
void shim_request_settings(void);
/* After it, where the script keeps its settings. */
void shim_request_settings_end(void);
int shim_sapi_activate(void);
#define SHIM_ABSENT_FILES 4096
/* Remembers directories without .user.ini files in this memory of so many bytes, filled with zeros; NULL for nowhere.
 */
void shim_user_ini_remember_absent(void *memory);
void shim_user_ini_shutdown(void);

#endif
