/* Included by every file of the shim that uses PHP: PHP's headers, the border to Rust (bridge.h), PHP's version
 * differences (compat.h) and the state of this process. The functions of each file are declared in its header. Includes
 * are relative to this folder. */
#ifndef HOWDAH_SHIM_H
#define HOWDAH_SHIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memrchr */
#endif

#include "bridge.h"
#include "compat.h"

/* Makes a function visible to Rust; -fvisibility=hidden hides all others. */
#define SHIM_EXPORT __attribute__((visibility("default")))

/* Result of a request, from a mode to the loop. */
typedef enum shim_outcome {
    SHIM_DONE,   /* the worker can take the next request */
    SHIM_RETIRE, /* the worker must take no more requests: finish this one, then exit */
} shim_outcome;

/* Differences between the modes: modes/mode.h. */
typedef struct shim_mode shim_mode;

/* The state of this process. Not reset between requests unless the field says so. */
typedef struct shim_state {
    const howdah_boot *boot;
    const howdah_worker_spec *worker;
    const shim_mode *mode;

    /* The current request; request is NULL between requests. */
    const WireRequest *request;
    const WireVar *vars;
    const char *strings;
    bool places_known;     /* sapi/input.c has located the known variables */
    bool response_ended;   /* the client has the whole response; later output is dropped */
    bool response_refused; /* the client has disconnected, or the request was cancelled */
    uint64_t peak_memory;  /* of the current request in bytes, read before PHP resets it */

    uint64_t requests_done;
    bool script_child; /* this process was forked by a script; the lane belongs to its parent */
} shim_state;

extern shim_state shim;

/* Returns a loaded extension, or NULL. */
static inline zend_module_entry *shim_extension(const char *name) {
    return zend_hash_str_find_ptr(&module_registry, name, strlen(name));
}

#endif
