/* Definition of a mode: all differences between modes, as functions and constants. Files outside of modes/ use these
 * fields and never check which mode is active (src/rooms_tests.rs enforces this), so adding a mode means adding a file
 * to this folder. */
#ifndef HOWDAH_MODES_MODE_H
#define HOWDAH_MODES_MODE_H

#include "shim.h"

struct shim_mode {
    const char *name;
    /* PHP settings that the mode needs, "key=value\n" each. The operator's settings come later and win. */
    const char *ini;
    /* True if a request gets the settings of its directory and its host: .user.ini, [PATH=] and [HOST=]. False where
     * settings belong to a script that many requests share. */
    bool directory_settings;
    /* True if settings changed by a request are kept for the next one. */
    bool keeps_settings;
    /* Number of $_SERVER arrays that are kept and updated for later requests: the maximum that may be in use at the
     * same time, at most SHIM_KEPT_SERVER_ARRAYS. */
    unsigned kept_server_arrays;
    /* True if signal handlers, signal mask and alarm are restored after each request. */
    bool restores_signals;
    /* True if a worker is replaced when memory that requests leave fills it or slows it down (process/wear.c). */
    bool keeps_memory;

    /* Called in the zygote before PHP starts, and when its modules have started. NULL: nothing to do. */
    void (*before_php)(void);
    void (*after_php)(void);

    /* Runs requests until there are no more. Returns the process's exit status. */
    int (*work)(void);
    /* frankenphp_handle_request(), called by a script outside of any request. Returns false when the script's loop must
     * end. NULL: scripts of this mode take no requests. */
    bool (*serve)(zend_fcall_info *function, zend_fcall_info_cache *cache);

    /* Takes output that is not for the response of the current request; true if it did. NULL: there is none. */
    bool (*takes_output)(const char *data, size_t length);
    /* Fills $_SERVER of the running script while there is no request. NULL: it has the process environment alone. */
    void (*boot_variables)(zval *array);
    /* Gets output and headers that no client receives, since there is no request or its response has ended. NULL: they
     * are dropped. */
    void (*unsent_output)(const char *data, size_t length);
    void (*unsent_head)(unsigned status, const sapi_headers_struct *headers);
    /* Called when a request has changed process state that PHP does not undo (process/changes.c). NULL: the worker is
     * replaced after that request. */
    void (*process_changed)(const char *what);
    /* Called when the client does not take the rest of the response. Need not return. */
    void (*client_gone)(void);
};

const shim_mode *shim_mode_of(howdah_mode mode);

#endif
