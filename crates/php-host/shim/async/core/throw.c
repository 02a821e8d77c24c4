/* Exceptions of the PHP library of async mode. */
#include "async/core/throw.h"

#include "shim.h"
#include "async/core/coroutine.h"

#include <string.h>

void async_throw(const char *name, const char *message) {
    char lower[64] = "howdah\\";
    zend_str_tolower_copy(lower + strlen("howdah\\"), name, MIN(strlen(name), sizeof lower - 8));
    zend_class_entry *found = zend_hash_str_find_ptr(EG(class_table), lower, strlen(lower));
    zend_throw_exception(found, message, 0);
}

void async_throw_cancelled(void) {
    coroutine_current->cancel_thrown = true;
    const zend_string *reason = coroutine_current->cancel_reason;
    async_throw("CancelledException",
                reason != NULL && ZSTR_LEN(reason) > 0 ? ZSTR_VAL(reason) : "The coroutine was cancelled");
}
