/* State of a request in PHP's libraries that is more than a value: the variables that output_add_rewrite_var() and
 * session.use_trans_sid add to links, tick functions, the errors that libxml collects and its entity loader callback.
 * Where many requests run at once, it moves with the request's globals (async/isolation/request_globals.c), and this
 * file initializes and frees it. Where one request follows the other, it is compared with its state at the script's
 * first request and restored if it differs: the errors of one visitor's document must not reach the next. */
#include "globals/libraries.h"

#include "shim.h"

#include <dlfcn.h>
#include <ext/json/php_json.h>
#include <ext/pcre/php_pcre.h>
#include <ext/standard/basic_functions.h>
#include <stddef.h>

void *globals_of(const char *extension, size_t size) {
    const zend_module_entry *module = shim_extension(extension);
    return module != NULL && module->globals_size >= size ? module->globals_ptr : NULL;
}

/* ext/sockets and ext/posix begin their globals with the error of the last call. */
int *globals_last_error_of(const char *extension) {
    return globals_of(extension, sizeof(int));
}

/* --- libxml --- */

/* ext/libxml's globals, declared here because PHP's header for them needs libxml's headers. */
typedef struct libxml_globals_layout {
    zval stream_context;
    smart_str error_buffer;
    zend_llist *error_list;
    shim_entity_loader entity_loader;
    bool entity_loader_disabled;
} libxml_globals_layout;

static libxml_globals_layout *libxml_at;
/* libxml's own variable; it is set while errors are collected. */
static void **libxml_collects;

typedef struct libxml_functions {
    const void *(*last_error)(void); /* NULL: there was none */
    void (*forget_error)(void);
} libxml_functions;
static libxml_functions libxml;

static void find_libxml(void) {
    union {
        void *symbol;
        void **(*handler)(void);
        const void *(*last_error)(void);
        void (*forget_error)(void);
    } found = {dlsym(RTLD_DEFAULT, "__xmlStructuredError")};
    libxml_at = found.symbol != NULL ? globals_of("libxml", sizeof *libxml_at) : NULL;
    if (libxml_at == NULL) {
        return;
    }
    libxml_collects = found.handler();
    found.symbol = dlsym(RTLD_DEFAULT, "xmlGetLastError");
    libxml.last_error = found.last_error;
    found.symbol = dlsym(RTLD_DEFAULT, "xmlResetLastError");
    libxml.forget_error = found.forget_error;
}

void globals_libraries_forget_xml_error(void) {
    if (libxml.last_error != NULL && libxml.forget_error != NULL && libxml.last_error() != NULL) {
        libxml.forget_error();
    }
}

static void add_libxml(void (*add)(void *at, size_t size)) {
    find_libxml();
    if (libxml_at != NULL) {
        add(libxml_at, sizeof *libxml_at);
        add(libxml_collects, sizeof(void *));
    }
}

static zend_llist *empty_copy(const zend_llist *list) {
    zend_llist *copy = emalloc(sizeof *copy);
    zend_llist_init(copy, list->size, list->dtor, list->persistent);
    return copy;
}

static void inherit_libxml(void) {
    if (libxml_at == NULL) {
        return;
    }
    libxml_at->error_buffer = (smart_str){0};
    shim_entity_loader_addref(&libxml_at->entity_loader);
    const zend_llist *boot = libxml_at->error_list;
    if (boot != NULL) {
        libxml_at->error_list = empty_copy(boot);
    }
}

static void destroy_libxml(void) {
    if (libxml_at == NULL) {
        return;
    }
    shim_entity_loader_free(&libxml_at->entity_loader);
    smart_str_free(&libxml_at->error_buffer);
    if (libxml_at->error_list != NULL) {
        zend_llist_destroy(libxml_at->error_list);
        efree(libxml_at->error_list);
        libxml_at->error_list = NULL;
    }
}

/* --- links that get a variable added --- */

/* The pattern of tags to rewrite is a setting of the process. */
#define REWRITER_SIZE offsetof(url_adapt_state_ex_t, tags)

static void destroy_rewriter(url_adapt_state_ex_t *rewriter) {
    smart_str *strings[] = {&rewriter->tag, &rewriter->arg,      &rewriter->buf,      &rewriter->result,
                            &rewriter->val, &rewriter->form_app, &rewriter->attr_val, &rewriter->url_app};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        smart_str_free(strings[i]);
    }
}

/* --- all --- */

void globals_libraries_places(void (*add)(void *at, size_t size)) {
    add(&BG(user_tick_functions), sizeof BG(user_tick_functions));
    add(&PG(tick_functions), sizeof PG(tick_functions));
    add(&BG(url_adapt_session_ex), REWRITER_SIZE);
    add(&BG(url_adapt_output_ex), REWRITER_SIZE);
    add_libxml(add);
}

void globals_libraries_inherit(void) {
    BG(user_tick_functions) = NULL;
    zend_llist boot = PG(tick_functions);
    zend_llist_init(&PG(tick_functions), boot.size, boot.dtor, boot.persistent);
    memset(&BG(url_adapt_session_ex), 0, REWRITER_SIZE);
    memset(&BG(url_adapt_output_ex), 0, REWRITER_SIZE);
    inherit_libxml();
}

void globals_libraries_destroy(void) {
    if (BG(user_tick_functions) != NULL) {
        zend_llist *functions = BG(user_tick_functions);
        BG(user_tick_functions) = NULL;
        zend_llist_clean(&PG(tick_functions));
        zend_llist_destroy(functions);
        efree(functions);
    }
    destroy_rewriter(&BG(url_adapt_session_ex));
    destroy_rewriter(&BG(url_adapt_output_ex));
    destroy_libxml();
}

/* --- one request after the other --- */

typedef struct boot_state {
    libxml_globals_layout libxml;
    void *libxml_collects;
    size_t tick_functions;
} boot_state;

static boot_state boot;
static int *last_errors[2]; /* of ext/sockets and ext/posix */

static size_t count_tick_functions(void) {
    return BG(user_tick_functions) != NULL ? zend_llist_count(BG(user_tick_functions)) : 0;
}

void globals_libraries_remember(void) {
    last_errors[0] = globals_last_error_of("sockets");
    last_errors[1] = globals_last_error_of("posix");
    boot.tick_functions = count_tick_functions();
    find_libxml();
    if (libxml_at == NULL) {
        return;
    }
    boot.libxml = *libxml_at;
    boot.libxml_collects = *libxml_collects;
    Z_TRY_ADDREF(boot.libxml.stream_context);
    shim_entity_loader_addref(&boot.libxml.entity_loader);
    if (boot.libxml.error_list != NULL) {
        boot.libxml.error_list = empty_copy(boot.libxml.error_list);
    }
}

static void reset_last_errors(void) {
    JSON_G(error_code) = PHP_JSON_ERROR_NONE;
    PCRE_G(error_code) = PHP_PCRE_NO_ERROR;
    for (size_t i = 0; i < sizeof last_errors / sizeof *last_errors; i++) {
        if (last_errors[i] != NULL) {
            *last_errors[i] = 0;
        }
    }
}

static void reset_libxml_errors(void) {
    globals_libraries_forget_xml_error();
    smart_str_free(&libxml_at->error_buffer);
    if (libxml_at->error_list != NULL) {
        zend_llist_clean(libxml_at->error_list);
    }
    if (*libxml_collects == boot.libxml_collects) {
        return;
    }
    *libxml_collects = boot.libxml_collects;
    if (boot.libxml.error_list == NULL && libxml_at->error_list != NULL) {
        efree(libxml_at->error_list);
        libxml_at->error_list = NULL;
    } else if (boot.libxml.error_list != NULL && libxml_at->error_list == NULL) {
        libxml_at->error_list = empty_copy(boot.libxml.error_list);
    }
}

static void reset_libxml(void) {
    if (libxml_at == NULL) {
        return;
    }
    reset_libxml_errors();
    libxml_at->entity_loader_disabled = boot.libxml.entity_loader_disabled;
    if (memcmp(&libxml_at->stream_context, &boot.libxml.stream_context, sizeof(zend_value)) != 0) {
        zval_ptr_dtor(&libxml_at->stream_context);
        ZVAL_COPY(&libxml_at->stream_context, &boot.libxml.stream_context);
    }
    if (memcmp(&libxml_at->entity_loader, &boot.libxml.entity_loader, sizeof boot.libxml.entity_loader) != 0) {
        shim_entity_loader_free(&libxml_at->entity_loader);
        libxml_at->entity_loader = boot.libxml.entity_loader;
        shim_entity_loader_addref(&libxml_at->entity_loader);
    }
}

static void reset_rewriter(url_adapt_state_ex_t *rewriter) {
    if (rewriter->active || rewriter->url_app.s != NULL || rewriter->form_app.s != NULL) {
        destroy_rewriter(rewriter);
        memset(rewriter, 0, REWRITER_SIZE);
    }
}

static void reset_strtok(void) {
    if (BG(strtok_string) != NULL) {
        zend_string_release(BG(strtok_string));
        BG(strtok_string) = NULL;
        BG(strtok_last) = NULL;
        BG(strtok_len) = 0;
    }
}

void globals_libraries_reset(void) {
    reset_last_errors();
    reset_strtok();
    reset_libxml();
    reset_rewriter(&BG(url_adapt_session_ex));
    reset_rewriter(&BG(url_adapt_output_ex));
    while (count_tick_functions() > boot.tick_functions) {
        zend_llist_remove_tail(BG(user_tick_functions));
    }
}
