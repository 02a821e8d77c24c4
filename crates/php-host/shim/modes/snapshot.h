/* Snapshot mode: the moment of the snapshot, and what scripts may say about it. For modes/ only. */
#ifndef HOWDAH_MODES_SNAPSHOT_H
#define HOWDAH_MODES_SNAPSHOT_H

#include "shim.h"

/* Takes the snapshot and begins a request. From then on every request begins here: each restore returns into this
 * function. False when the worker shall end. */
bool shim_snapshot_take_and_begin_request(void);
/* When the boot began, microseconds since the epoch; as the requests' time of arrival. */
uint64_t shim_snapshot_boot_began(void);

/* --- snapshot_functions.c --- */

/* Calls the functions registered by Howdah\on_restore(), at the start of a request. */
void shim_snapshot_call_restore_callbacks(void);
/* Has the request run on a worker that boots after it has arrived: this one ends, and the function does not return.
 * False where that cannot be: the request goes on here. */
bool shim_snapshot_boot_again(const char *why, size_t length);

#endif
