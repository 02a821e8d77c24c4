/* Exceptions of the PHP library of async mode. */
#include "async/core/throw.h"

#include "shim.h"

#include <string.h>

void async_throw(const char *name, const char *message) {
    char lower[64] = "howdah\\";
    zend_str_tolower_copy(lower + strlen("howdah\\"), name, MIN(strlen(name), sizeof lower - 8));
    zend_class_entry *found = zend_hash_str_find_ptr(EG(class_table), lower, strlen(lower));
    zend_throw_exception(found, message, 0);
}
