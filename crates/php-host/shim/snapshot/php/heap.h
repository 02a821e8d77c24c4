/* Zend's memory: chunks that requests use over and over and that need no restoring. */
#ifndef HOWDAH_SNAPSHOT_PHP_HEAP_H
#define HOWDAH_SNAPSHOT_PHP_HEAP_H

#include "shim.h"

/* Gives PHP a heap with storage of ours. Before PHP's request is opened. */
void shim_snapshot_heap_install(void);
/* Leaves the spare chunks out of the snapshot. */
void shim_snapshot_heap_spare(void);
/* Frees the garbage that the boot has left, without writing to what requests will use. Before the snapshot. */
void shim_snapshot_heap_collect(void);

#endif
