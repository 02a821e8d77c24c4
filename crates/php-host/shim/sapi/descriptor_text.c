#include "sapi/descriptor_text.h"

#include "shim.h"

#include <sys/stat.h>
#include <unistd.h>

zend_string *shim_read_text(int file) {
    struct stat status;
    zend_string *text = NULL;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
        text = zend_string_alloc((size_t)status.st_size, 0);
        ssize_t length = pread(file, ZSTR_VAL(text), ZSTR_LEN(text), 0);
        ZSTR_LEN(text) = length > 0 ? (size_t)length : 0;
        ZSTR_VAL(text)[ZSTR_LEN(text)] = '\0';
    }
    close(file);
    return text;
}
