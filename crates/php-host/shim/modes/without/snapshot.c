/* A build without snapshot mode (the feature `snapshot` of howdah-php): the functions that scripts and the zygote call.
 * As in the other modes, there is nothing to restore. */
#include "shim.h"

SHIM_EXPORT void howdah_c_refuse_warmup(void) {
}

SHIM_EXPORT int howdah_c_fork_sibling(void) {
    return -1;
}

SHIM_EXPORT bool howdah_c_boot_is_outdated(uint64_t began_us) {
    (void)began_us;
    return false;
}

/* Takes the only argument of the call. False if it is no callable. */
static bool take_function(zend_execute_data *execute_data, zend_fcall_info *function) {
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(*function, cache)
    ZEND_PARSE_PARAMETERS_END_EX(return false);
    return true;
}

PHP_FUNCTION(Howdah_snapshot) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_FALSE;
}

PHP_FUNCTION(Howdah_on_restore) {
    zend_fcall_info unused;
    (void)take_function(execute_data, &unused);
}

PHP_FUNCTION(Howdah_after_warmup) {
    zend_fcall_info unused;
    (void)take_function(execute_data, &unused);
}

PHP_FUNCTION(Howdah_connect_each_worker) {
    zend_fcall_info function;
    if (!take_function(execute_data, &function)) {
        return;
    }
    zval result;
    ZVAL_UNDEF(&result);
    call_user_function(NULL, NULL, &function.function_name, &result, 0, NULL);
    zval_ptr_dtor(&result);
}

PHP_FUNCTION(Howdah_boot_again) {
    RETURN_FALSE;
}

PHP_FUNCTION(Howdah_redefine) {
    RETURN_FALSE;
}
