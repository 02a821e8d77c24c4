/* Requests before the snapshot, and what they leave. */
#ifndef HOWDAH_SNAPSHOT_PHP_WARMUP_H
#define HOWDAH_SNAPSHOT_PHP_WARMUP_H

#include "shim.h"

/* First of all, before the engine looks at the process. */
void shim_warmup_prepare(void);
/* For a boot file, or a recipe that is one: the warm-up requests as whole requests of classic mode, before it runs. */
void shim_warmup_process(void);
/* For a worker script that has booted: what its warm-up requests are answered where none has run before. */
void shim_warmup_ask_alone(zend_fcall_info *function, zend_fcall_info_cache *cache);

typedef enum shim_warmup_step {
    SHIM_WARMUP_TURN, /* a request was handled; the script goes on with its loop's body */
    SHIM_WARMUP_DONE, /* there are no more: time for the snapshot */
} shim_warmup_step;
/* The script asks for a request before the snapshot. */
shim_warmup_step shim_warmup_turn(zend_fcall_info *function, zend_fcall_info_cache *cache);
/* The script is over without a snapshot. Does not return if that was the doing of a warm-up request. */
void shim_warmup_script_ended(void);
/* Makes a warm-up request on the finished snapshot the current one; they are counted from 0. */
void shim_warmup_make_current(size_t number);
/* Looks at what the requests on the snapshot were answered. Does not return if the warm-up has left something that all
 * visitors would share: the server replaces the process by one that boots without. */
void shim_warmup_judge(void);

/* True if the current request is one of the warm-up. */
bool shim_warmup_running(void);
/* Response to a warm-up request: parts of its body, its head, the strings of its session, and its end. Without
 * effect for other requests. */
void shim_warmup_output(const char *data, size_t length);
void shim_warmup_head(unsigned status, const sapi_headers_struct *headers);
void shim_warmup_session(void);
void shim_warmup_responded(void);

#endif
