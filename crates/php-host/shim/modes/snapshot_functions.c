/* Functions for scripts about the snapshot: take it now, call a function after each restore, boot again, redefine a
 * constant for the request. */
#include "shim.h"
#include "modes/script_loop.h"
#include "modes/snapshot.h"
#include "sapi/log.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/request_end.h"
#include "snapshot/php/warmup.h"

#include <syslog.h>

static zval restore_callbacks; /* an array, or undefined */

void shim_snapshot_call_restore_callbacks(void) {
    if (Z_TYPE(restore_callbacks) != IS_ARRAY) {
        return;
    }
    zval *callback;
    ZEND_HASH_FOREACH_VAL(Z_ARRVAL(restore_callbacks), callback) {
        zval result;
        ZVAL_UNDEF(&result);
        call_user_function(NULL, NULL, callback, &result, 0, NULL);
        zval_ptr_dtor(&result);
        if (EG(exception) != NULL) {
            return;
        }
    }
    ZEND_HASH_FOREACH_END();
}

/* Returns true when the rest of the script runs for a request; false where there is nothing to take a snapshot of. */
PHP_FUNCTION(Howdah_snapshot) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (!snapshot_awaited() || !shim_loop_booting()) {
        RETURN_FALSE;
    }
    shim_loop_boot_end();
    if (!shim_snapshot_take_and_begin_request()) {
        snapshot_exit();
    }
    RETURN_TRUE;
}

/* In other modes nothing is restored, and the function is not called. */
PHP_FUNCTION(Howdah_on_restore) {
    zend_fcall_info function;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(function, cache)
    ZEND_PARSE_PARAMETERS_END();
    if (!snapshot_awaited()) {
        return;
    }
    if (Z_TYPE(restore_callbacks) != IS_ARRAY) {
        array_init(&restore_callbacks);
    }
    Z_TRY_ADDREF(function.function_name);
    zend_hash_next_index_insert(Z_ARRVAL(restore_callbacks), &function.function_name);
}

/* True if another worker can run the request. A request that arrived before the boot began runs here: it may predate
 * the change, and otherwise it might be passed on forever. */
static bool may_give_back(void) {
    return snapshot_taken() && shim.request != NULL && !shim_warmup_running() && !shim.script_child &&
           !SG(headers_sent) && shim.request->received_unix_us > shim_snapshot_boot_began();
}

bool shim_snapshot_boot_again(const char *why, size_t length) {
    if (!may_give_back()) {
        return false;
    }
    shim_log(LOG_NOTICE, "snapshot: worker replaced: the boot is outdated%s%.*s", length != 0 ? ": " : "",
             (int)(length < 400 ? length : 400), why);
    if (!howdah_rs_give_back(shim_snapshot_boot_began())) {
        return false;
    }
    /* Leaves the request without running any more PHP code, as if it had not begun here; but its temporary files must
     * go. */
    shim_snapshot_end_outside();
    snapshot_exit();
}

PHP_FUNCTION(Howdah_boot_again) {
    char *why = "";
    size_t length = 0;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_STRING(why, length)
    ZEND_PARSE_PARAMETERS_END();
    RETURN_BOOL(shim_snapshot_boot_again(why, length));
}

/* Changes the value in place, since compiled code keeps the address of a constant that it has used once. Allows numbers
 * only, so no other value's reference count has to be kept. */
PHP_FUNCTION(Howdah_redefine) {
    zend_string *name;
    zval *value;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(name)
    Z_PARAM_NUMBER(value)
    ZEND_PARSE_PARAMETERS_END();
    zend_constant *constant =
        snapshot_awaited() || snapshot_taken() ? zend_hash_find_ptr(EG(zend_constants), name) : NULL;
    if (constant == NULL || ZEND_CONSTANT_MODULE_NUMBER(constant) != PHP_USER_CONSTANT) {
        RETURN_FALSE;
    }
    zval_ptr_dtor(&constant->value);
    ZVAL_COPY_VALUE(&constant->value, value);
    RETURN_TRUE;
}
