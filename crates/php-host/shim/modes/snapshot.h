/* Snapshot mode: the moment of the snapshot, and the functions that scripts have for it. Only for modes/. */
#ifndef HOWDAH_MODES_SNAPSHOT_H
#define HOWDAH_MODES_SNAPSHOT_H

#include "shim.h"

/* Takes the snapshot and begins a request. From then on every request begins here: each restore returns into this
 * function. False when the worker must end. */
bool shim_snapshot_take_and_begin_request(void);
/* Returns the time when the boot began, in microseconds since the epoch, as requests' arrival times are. */
uint64_t shim_snapshot_boot_began(void);

/* --- snapshot_functions.c --- */

/* Calls the functions registered by Howdah\on_restore(), at the start of a request. */
void shim_snapshot_call_restore_callbacks(void);
/* Runs the request again on a worker that boots after the request's arrival: this worker ends, and the function does
 * not return. False if that is impossible: the request continues here. */
bool shim_snapshot_boot_again(const char *why, size_t length);

#endif
