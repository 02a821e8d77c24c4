/* Variables of PHP's libraries that belong to a request and are more than values. */
#ifndef HOWDAH_GLOBALS_LIBRARIES_H
#define HOWDAH_GLOBALS_LIBRARIES_H

#include "shim.h"

/* For concurrent requests: passes the places to `add`; initializes them for a request; frees the request's content. */
void globals_libraries_places(void (*add)(void *at, size_t size));
void globals_libraries_inherit(void);
void globals_libraries_destroy(void);
/* For modes with one request after the other: saves the state that the script has before its first request; restores
 * it. */
void globals_libraries_remember(void);
void globals_libraries_reset(void);
/* Clears libxml's last error, which is in the library itself. */
void globals_libraries_forget_xml_error(void);

/* Returns an extension's globals, or NULL if it is not loaded or they are smaller than its headers say. */
void *globals_of(const char *extension, size_t size);
/* Returns the error of an extension's last call, its first global, or NULL if it is not loaded. */
int *globals_last_error_of(const char *extension);

#endif
