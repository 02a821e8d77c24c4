/* What libraries of PHP keep for a request and what is more than a value: the variables that output_add_rewrite_var()
 * and session.use_trans_sid add to links, tick functions, the errors that libxml collects and whom it asks for
 * entities. It moves with the request's globals (request_globals.c); here is how it begins and how it ends. */
#include "async/isolation/library_globals.h"

#include "shim.h"

#include <dlfcn.h>
#include <ext/standard/basic_functions.h>
#include <stddef.h>

void *async_globals_of(const char *extension, size_t size) {
    const zend_module_entry *module = shim_extension(extension);
    return module != NULL && module->globals_size >= size ? module->globals_ptr : NULL;
}

/* ext/sockets and ext/posix begin their globals with the error of the last call. */
int *async_last_error_of(const char *extension) {
    return async_globals_of(extension, sizeof(int));
}

/* --- libxml --- */

/* ext/libxml's globals; its header needs those of libxml. */
typedef struct libxml_globals_layout {
    zval stream_context;
    smart_str error_buffer;
    zend_llist *error_list;
    shim_entity_loader entity_loader;
    bool entity_loader_disabled;
} libxml_globals_layout;

static libxml_globals_layout *libxml_at;

static void add_libxml(void (*add)(void *at, size_t size)) {
    /* libxml's own variable, which says whether errors are collected. */
    union {
        void *symbol;
        void **(*function)(void);
    } handler = {dlsym(RTLD_DEFAULT, "__xmlStructuredError")};
    libxml_at = async_globals_of("libxml", sizeof *libxml_at);
    if (handler.symbol == NULL || libxml_at == NULL) {
        libxml_at = NULL;
        return;
    }
    add(libxml_at, sizeof *libxml_at);
    add(handler.function(), sizeof(void *));
}

static void inherit_libxml(void) {
    if (libxml_at == NULL) {
        return;
    }
    libxml_at->error_buffer = (smart_str){0};
    shim_entity_loader_addref(&libxml_at->entity_loader);
    const zend_llist *boot = libxml_at->error_list;
    if (boot != NULL) {
        libxml_at->error_list = emalloc(sizeof *boot);
        zend_llist_init(libxml_at->error_list, boot->size, boot->dtor, boot->persistent);
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

/* --- links that get a variable --- */

/* What they look for is a setting and belongs to the process. */
#define REWRITER_SIZE offsetof(url_adapt_state_ex_t, tags)

static void destroy_rewriter(url_adapt_state_ex_t *rewriter) {
    smart_str *strings[] = {&rewriter->tag, &rewriter->arg,      &rewriter->buf,      &rewriter->result,
                            &rewriter->val, &rewriter->form_app, &rewriter->attr_val, &rewriter->url_app};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        smart_str_free(strings[i]);
    }
}

/* --- all --- */

void async_libraries_places(void (*add)(void *at, size_t size)) {
    add(&BG(user_tick_functions), sizeof BG(user_tick_functions));
    add(&PG(tick_functions), sizeof PG(tick_functions));
    add(&BG(url_adapt_session_ex), REWRITER_SIZE);
    add(&BG(url_adapt_output_ex), REWRITER_SIZE);
    add_libxml(add);
}

void async_libraries_inherit(void) {
    BG(user_tick_functions) = NULL;
    zend_llist boot = PG(tick_functions);
    zend_llist_init(&PG(tick_functions), boot.size, boot.dtor, boot.persistent);
    memset(&BG(url_adapt_session_ex), 0, REWRITER_SIZE);
    memset(&BG(url_adapt_output_ex), 0, REWRITER_SIZE);
    inherit_libxml();
}

void async_libraries_destroy(void) {
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
