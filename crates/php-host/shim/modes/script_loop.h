/* A request that runs inside a script which is already running: frankenphp_handle_request() in its pieces. Worker mode
 * uses them as one turn; a mode that keeps the script's state otherwise puts its own steps between them. The order is
 *
 *     shim_loop_boot_end            once, when the script asks for its first request
 *     ( shim_loop_begin             waits for a request, starts PHP's request for it (request_start.h)
 *       shim_loop_run               runs the script's callback
 *       shim_loop_end_response      the client has its whole response; the script goes on
 *       shim_loop_release )*        the request is over, the worker is free
 *     shim_loop_leave               there are no more requests: the script runs to its end without one
 *
 * Each may be left by a PHP bailout. A request that is still open then (shim.request is set) ends with the script. */
#ifndef HOWDAH_MODES_SCRIPT_LOOP_H
#define HOWDAH_MODES_SCRIPT_LOOP_H

#include "shim.h"

/* A process that stays in one request of PHP uses OPcache's shared memory as long as it lives: others must not kill it
 * for that when they want to empty the cache. */
#define SHIM_LOOP_INI "opcache.force_restart_timeout=1000000000\n"

/* Opens the request in which a script will run that takes requests itself, and enters its directory. */
bool shim_loop_open_script(const char *path);
/* Runs the worker script to its end, in a request that is open. */
void shim_loop_execute_script(const char *path);
/* Opens the request in which the worker script runs, enters its directory and runs it to its end. The script takes
 * requests meanwhile. SHIM_RETIRE always: a script that has ended is not started again in this process. */
shim_outcome shim_loop_run_script(const char *path);
/* Closes the request in which the script ran. */
shim_outcome shim_loop_close_script(void);
/* The status with which the process is to end: BOOT_FAILED for a script that never asked for a request. */
int shim_loop_exit_status(void);

/* True if the script still boots: it runs and has not asked for a request. */
bool shim_loop_booting(void);
/* True if the running code may ask for a request: a worker script is there, and none of its requests is running. */
bool shim_loop_may_serve(void);

void shim_loop_boot_end(void);
/* Starts its time limit, which counts the processor time of the process: it says nothing about one request among
 * several.
 */
void shim_loop_limit_time(void);
/* False when the worker shall end: there is no request then. */
bool shim_loop_begin(void);
/* False when the script is on its way out (exit): the response is complete when it has ended. */
bool shim_loop_run(zend_fcall_info *function, zend_fcall_info_cache *cache);
/* An uncaught exception: the application's handler gets it, else PHP's message is printed. */
void shim_loop_report_exception(void);
void shim_loop_end_response(void);
/* The end of a request for PHP, without telling the server. */
void shim_loop_put_away(void);
/* False when the worker's limits are reached: this was its last request. */
bool shim_loop_release(void);
void shim_loop_leave(void);

/* All of the above for one request. False when the worker shall end. */
bool shim_loop_turn(zend_fcall_info *function, zend_fcall_info_cache *cache);

/* The requests run concurrently from now on, and the loop's pieces are for its end only. */
void shim_loop_hand_over(void);

/* Output of a script without a request, for the log. */
void shim_loop_unsent_output(const char *text, size_t length);
/* The script lives on for other requests: this one only loses its output. */
void shim_loop_client_gone(void);
/* $_SERVER of the script while it boots. */
void shim_loop_boot_variables(zval *array);

#endif
