/* The end of a request: shutdown functions, destructors, resources. */
#ifndef HOWDAH_SNAPSHOT_PHP_REQUEST_END_H
#define HOWDAH_SNAPSHOT_PHP_REQUEST_END_H

#include "shim.h"

/* Called at the snapshot: everything that exists now belongs to the application. */
void shim_snapshot_end_remember(void);
/* Does everything that PHP does at the end of a request before it frees memory. */
void shim_snapshot_end_request(bool after_bailout);
/* The last part of that: releases everything that the request holds outside of its memory. */
void shim_snapshot_end_outside(void);
bool shim_snapshot_is_boot_object(const zend_object *object);
/* Returns the description of a stream that cannot be restored, or NULL. */
const char *shim_snapshot_refused_stream(void);

#endif
