/* One whole request of PHP for the current request, from its start to its end. Classic mode runs all requests so, and
 * snapshot mode the warm-up requests of a boot file, or of a recipe that is one. */
#include "sapi/whole_request.h"

#include "shim.h"
#include "sapi/error_page.h"
#include "sapi/input.h"
#include "sapi/log.h"
#include "sapi/opcache_room.h"
#include "sapi/script.h"
#include "sapi/server_array_reuse.h"
#include "sapi/user_ini.h"

#include <syslog.h>

/* Set while PHP's request is open, so that it is ended exactly once. */
static bool request_open;
/* The value of max_input_time that PHP would have used, see shim_whole_request_run(). */
static zend_long max_input_time;

void shim_respond_instead(unsigned status) {
    SG(sapi_headers).http_response_code = (int)status;
    if (status == 403) {
        shim_log(LOG_ERR, "Access to the script is denied: %s", shim_text(shim.request->script));
        PUTS("Access denied.\n");
    } else {
        shim_log(LOG_ERR, "Primary script unknown: %s", shim_text(shim.request->script));
        PUTS("File not found.\n");
    }
}

shim_outcome shim_whole_request_run(void) {
    /* The whole body has arrived before PHP begins, so reading it cannot take long: max_input_time would only cost a
     * second timer. PHP reads the variable; scripts see the ini entry, which is left unchanged. */
    max_input_time = PG(max_input_time);
    PG(max_input_time) = -1;
    shim_input_prepare();
    shim_request_settings();
    request_open = true;
    if (php_request_startup() == FAILURE) {
        SG(sapi_headers).http_response_code = 500;
        shim_log(LOG_CRIT, "PHP could not start a request; the worker ends");
        return SHIM_RETIRE;
    }
    SHIM_SIGNALS_KEEP_HANDLERS();
    shim_error_page_begin();

    zend_file_handle file;
    unsigned status = shim_script_prepare(&file);
    if (status != 0) {
        shim_respond_instead(status);
        return SHIM_DONE;
    }
    shim_script_execute(&file);
    /* With OPcache, PHP does not always take ownership of the handle. */
    if (!file.in_list) {
        zend_destroy_file_handle(&file);
    }
    return SHIM_DONE;
}

shim_outcome shim_whole_request_end(void) {
    if (request_open) {
        request_open = false;
        PG(max_input_time) = max_input_time;
        /* A resident mode may warm up with whole requests; none of their memory may be kept. */
        shim_kept_forget();
        shim_error_page_end_script();
        shim_opcache_room_check_sometimes();
        php_request_shutdown(NULL);
    }
    shim_input_release();
    return SHIM_DONE;
}
