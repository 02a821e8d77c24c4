/* Definition of a mode: everything in which modes differ, as functions and facts. Files outside of modes/ use what is
 * here and never ask which mode it is (src/rooms_tests.rs checks that), so another mode is another file in this folder.
 */
#ifndef HOWDAH_MODES_MODE_H
#define HOWDAH_MODES_MODE_H

#include "shim.h"

struct shim_mode {
    const char *name;
    /* Settings of PHP that the mode needs, "key=value\n" each. Those of the operator come later and win. */
    const char *ini;
    /* True if a request gets the settings of its directory and its host: .user.ini, [PATH=] and [HOST=]. Not where
     * settings belong to a script that many requests share. */
    bool directory_settings;
    /* True if settings changed by a request are kept for the next one. */
    bool keeps_settings;
    /* Number of arrays of $_SERVER that are kept and updated for later requests: as many as may be in use at the same
     * time, at most SHIM_KEPT_SERVER_ARRAYS. */
    unsigned kept_server_arrays;
    /* True if handlers, mask and alarm of a request are gone with it. */
    bool restores_signals;
    /* True if a request's data in PHP's heap is kept for the next one. */
    bool keeps_memory;

    /* In the zygote: before PHP starts, and when its modules have started. NULL: nothing to do. */
    void (*before_php)(void);
    void (*after_php)(void);

    /* The life of a worker: takes requests until there are no more. Returns the process's exit status. */
    int (*work)(void);
    /* frankenphp_handle_request(), called by a script that no request of this process is running in. False when the
     * script's loop shall end. NULL: scripts of this mode take no requests. */
    bool (*serve)(zend_fcall_info *function, zend_fcall_info_cache *cache);

    /* Output that is not for the response of the current request; true if it was taken. NULL: there is none. */
    bool (*takes_output)(const char *data, size_t length);
    /* $_SERVER of the running script while there is no request. NULL: it has the process environment alone. */
    void (*boot_variables)(zval *array);
    /* Output and heads that no client gets, since there is no request or its response has ended. NULL: dropped. */
    void (*unsent_output)(const char *data, size_t length);
    void (*unsent_head)(unsigned status, const sapi_headers_struct *headers);
    /* A request has changed what stays with its process (process/changes.c). NULL: the worker is replaced after it. */
    void (*process_changed)(const char *what);
    /* The client does not take the rest of the response. Need not return. */
    void (*client_gone)(void);
};

const shim_mode *shim_mode_of(howdah_mode mode);

#endif
