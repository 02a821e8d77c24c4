/* Prints PHP's information about itself on standard output, as `php-fpm -i` and `php-fpm -m` do. */
#include "shim.h"

#include <ext/standard/info.h>
#include <zend_extensions.h>

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static size_t to_stdout(const char *data, size_t length) {
    return fwrite(data, 1, length, stdout);
}

static void print_info(void) {
    sapi_module.ub_write = to_stdout;
    sapi_module.phpinfo_as_text = 1;
    if (php_request_startup() == FAILURE) {
        return;
    }
    SG(headers_sent) = 1;
    SG(request_info).no_headers = 1;
    zend_try {
        php_print_info(0xFFFFFFFF);
        php_output_end_all();
    }
    zend_end_try();
    php_request_shutdown(NULL);
}

static int compare_names(const void *a, const void *b) {
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_sorted(const char **names, size_t count) {
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        printf("%s\n", names[i]);
    }
}

static void print_modules(void) {
    size_t count = 0;
    const char **names =
        calloc(zend_hash_num_elements(&module_registry) + zend_llist_count(&zend_extensions) + 1, sizeof *names);
    if (names == NULL) {
        return;
    }
    zend_module_entry *module;
    ZEND_HASH_FOREACH_PTR(&module_registry, module) {
        names[count++] = module->name;
    }
    ZEND_HASH_FOREACH_END();
    puts("[PHP Modules]");
    print_sorted(names, count);
    count = 0;
    zend_llist_position position;
    const zend_extension *extension = zend_llist_get_first_ex(&zend_extensions, &position);
    for (; extension != NULL; extension = zend_llist_get_next_ex(&zend_extensions, &position)) {
        names[count++] = extension->name;
    }
    puts("\n[Zend Modules]");
    print_sorted(names, count);
    puts("");
    free(names);
}

SHIM_EXPORT void howdah_c_print(bool modules) {
    if (modules) {
        print_modules();
    } else {
        print_info();
    }
    fflush(stdout);
}
