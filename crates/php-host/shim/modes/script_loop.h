/* A request that runs inside an already running script: the steps of frankenphp_handle_request(). Worker mode runs them
 * in one call; a mode that handles the script's state differently adds its own steps between them. The order is
 *
 *     shim_loop_boot_end            once, when the script asks for its first request
 *     ( shim_loop_begin             waits for a request, starts PHP's request for it (request_start.h)
 *       shim_loop_run               runs the script's callback
 *       shim_loop_end_response      the client has its whole response; the script goes on
 *       shim_loop_release )*        the request is over, the worker is free
 *     shim_loop_leave               there are no more requests: the script runs to its end without one
 *
 * Each may exit by a PHP bailout. A request that is still open then (shim.request is set) ends with the script. */
#ifndef HOWDAH_MODES_SCRIPT_LOOP_H
#define HOWDAH_MODES_SCRIPT_LOOP_H

#include "shim.h"

/* A process that stays in one request of PHP uses OPcache's shared memory as long as it lives. Other processes must not
 * kill it for that when they want to restart the cache. */
#define SHIM_LOOP_INI "opcache.force_restart_timeout=1000000000\n"

/* Opens PHP's request for a worker script or boot file, and enters its directory. */
bool shim_loop_open_script(const char *path);
/* Runs the worker script to its end, in a request that is already open. */
void shim_loop_execute_script(const char *path);
/* Opens the request for the worker script, enters the script's directory and runs it to its end; the script takes
 * requests meanwhile. Always returns SHIM_RETIRE: a script that has ended is not started again in this process. */
shim_outcome shim_loop_run_script(const char *path);
/* Closes the script's request. */
shim_outcome shim_loop_close_script(void);
/* Returns the process's exit status: BOOT_FAILED for a script that never asked for a request. */
int shim_loop_exit_status(void);

/* True while the script boots: it runs and has not asked for a request. */
bool shim_loop_booting(void);
/* True if the running code may ask for a request: a worker script runs, and it is not inside one of its requests. */
bool shim_loop_may_serve(void);

void shim_loop_boot_end(void);
/* Starts PHP's time limit. It counts the processor time of the process, so it cannot limit one of several concurrent
 * requests. */
void shim_loop_limit_time(void);
/* Takes a request and starts it. False when the worker must end: there is no request then. */
bool shim_loop_begin(void);
/* Runs the script's callback. False when the script is exiting (exit): the response is complete when the script has
 * ended. */
bool shim_loop_run(zend_fcall_info *function, zend_fcall_info_cache *cache);
/* Handles an uncaught exception: the application's handler gets it, otherwise PHP's message is printed. */
void shim_loop_report_exception(void);
void shim_loop_end_response(void);
/* Ends a request for PHP without reporting that to the server. */
void shim_loop_put_away(void);
/* Ends the request and frees the worker. False when the worker must be replaced (process/wear.h): this was its last
 * request. */
bool shim_loop_release(void);
void shim_loop_leave(void);

/* Runs all of the steps above for one request. False when the worker must end. */
bool shim_loop_turn(zend_fcall_info *function, zend_fcall_info_cache *cache);

/* Marks that requests run concurrently from now on; the loop's steps are only for its end. */
void shim_loop_hand_over(void);

/* Logs output of a script without a request. */
void shim_loop_unsent_output(const char *text, size_t length);
/* Discards the rest of the output of this request; the script continues for other requests. */
void shim_loop_client_gone(void);
/* Fills $_SERVER of the script while it boots. */
void shim_loop_boot_variables(zval *array);

#endif
