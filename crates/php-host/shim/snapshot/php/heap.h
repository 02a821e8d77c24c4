/* Zend's memory: chunks that requests reuse and that need no restoring. */
#ifndef HOWDAH_SNAPSHOT_PHP_HEAP_H
#define HOWDAH_SNAPSHOT_PHP_HEAP_H

#include "shim.h"

/* Gives PHP a heap with our own storage. Called before PHP's request is opened. */
void shim_snapshot_heap_install(void);
/* Leaves the spare chunks out of the snapshot. */
void shim_snapshot_heap_spare(void);
/* Frees the garbage that the boot has left, without making later requests write to the application's objects. Called
 * before the snapshot. */
void shim_snapshot_heap_collect(void);

#endif
