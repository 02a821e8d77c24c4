#include "sapi/watch_function.h"

zif_handler shim_watch_function(const char *name, size_t name_len, zif_handler handler) {
    zend_function *function = zend_hash_str_find_ptr(CG(function_table), name, name_len);
    if (function == NULL || function->type != ZEND_INTERNAL_FUNCTION) {
        return NULL;
    }
    zif_handler original = function->internal_function.handler;
    function->internal_function.handler = handler;
    return original;
}
