/* Requests before the snapshot, and the check of their side effects. */
#ifndef HOWDAH_SNAPSHOT_PHP_WARMUP_H
#define HOWDAH_SNAPSHOT_PHP_WARMUP_H

#include "shim.h"

/* Called before anything else, before the engine lists the mappings. */
void shim_warmup_prepare(void);
/* For a boot file, or a recipe that is one: runs the warm-up requests as whole requests of classic mode, before the
 * boot file runs. */
void shim_warmup_process(void);
/* For a worker script that has booted: records the responses to its warm-up requests in forks where none has run
 * before. */
void shim_warmup_ask_alone(zend_fcall_info *function, zend_fcall_info_cache *cache);

typedef enum shim_warmup_step {
    SHIM_WARMUP_TURN, /* a request was handled; the script continues with its loop's body */
    SHIM_WARMUP_DONE, /* there are no more: take the snapshot */
} shim_warmup_step;
/* Called when the script asks for a request before the snapshot. */
shim_warmup_step shim_warmup_turn(zend_fcall_info *function, zend_fcall_info_cache *cache);
/* Called when the script has ended without a snapshot. Does not return if a warm-up request caused that in the worker
 * that boots for others. */
void shim_warmup_script_ended(void);
/* Makes a warm-up request on the finished snapshot the current one; numbers begin at 0. */
void shim_warmup_make_current(size_t number);
/* Checks the responses to the requests on the snapshot. Does not return if the warm-up has left something that all
 * visitors would share: the server replaces the process with one that boots without warm-up. */
void shim_warmup_judge(void);

/* True if the current request is one of the warm-up. */
bool shim_warmup_running(void);
/* Records the response to a warm-up request: parts of its body, its head, the strings of its session, and its end. No
 * effect for other requests. */
void shim_warmup_output(const char *data, size_t length);
void shim_warmup_head(unsigned status, const sapi_headers_struct *headers);
void shim_warmup_session(void);
void shim_warmup_responded(void);

#endif
