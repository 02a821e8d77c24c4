/* Variables of PHP's libraries that belong to a request and are more than values. */
#ifndef HOWDAH_GLOBALS_LIBRARIES_H
#define HOWDAH_GLOBALS_LIBRARIES_H

#include "shim.h"

/* For many requests at once: names the places to `add`; gives the request what belongs to none; ends what the request
 * had. */
void globals_libraries_places(void (*add)(void *at, size_t size));
void globals_libraries_inherit(void);
void globals_libraries_destroy(void);
/* For one request after the other: keeps what the script has set before its first request; puts that back. */
void globals_libraries_remember(void);
void globals_libraries_reset(void);
/* Forgets libxml's last error, which lies in the library itself. */
void globals_libraries_forget_xml_error(void);

/* An extension's globals; NULL: it is not loaded, or they are smaller than its headers say. */
void *globals_of(const char *extension, size_t size);
/* Where an extension has the error of the last call, as its first global; NULL: it is not loaded. */
int *globals_last_error_of(const char *extension);

#endif
