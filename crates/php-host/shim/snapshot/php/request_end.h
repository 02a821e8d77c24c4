/* The end of a request: shutdown functions, destructors, resources. */
#ifndef HOWDAH_SNAPSHOT_PHP_REQUEST_END_H
#define HOWDAH_SNAPSHOT_PHP_REQUEST_END_H

#include "shim.h"

/* At the snapshot: what exists now is the application's. */
void shim_snapshot_end_remember(void);
/* Everything that PHP does at the end of a request before memory goes. */
void shim_snapshot_end_request(bool after_bailout);
/* The last part of that: lets go of what the request holds outside of its memory. */
void shim_snapshot_end_outside(void);
bool shim_snapshot_is_boot_object(const zend_object *object);
/* A stream that cannot be restored, as text, or NULL. */
const char *shim_snapshot_refused_stream(void);

#endif
