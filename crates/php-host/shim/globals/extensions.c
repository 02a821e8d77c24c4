/* Variables that extensions do not export. Each belongs to a request (the last error of mysqli, links to PostgreSQL,
 * the time zone, encodings of mbstring) or to the running code (the types of a SOAP call, the collator of a sort). This
 * file defines their layouts as far as needed, and trusts a layout only if the size that the extension itself reports,
 * or the position of one of its settings, agrees. date and mbstring have headers for theirs. */
#include "globals/extensions.h"

#include "shim.h"
#include "globals/libraries.h"
#include "sapi/watch_function.h"

#include <ext/date/lib/timelib.h>
#include <ext/date/php_date.h>
#if SHIM_WITH_MBSTRING
#include <ext/mbstring/mbstring.h>
#endif
#include <ext/standard/file.h>
#include <stddef.h>
#include <stdlib.h>

typedef void (*add_place)(void *at, size_t size);
#define ADD(variable) add(&(variable), sizeof(variable))
#define CLEAR(variable) memset(&(variable), 0, sizeof(variable))

/* Returns the globals of an extension if they have exactly the size of the layout below. */
static void *exact_globals(const char *extension, size_t size) {
    const zend_module_entry *module = shim_extension(extension);
    return module != NULL && module->globals_size == size ? module->globals_ptr : NULL;
}

/* Locates a setting's C variable: in `*base`, at the returned offset. Negative: there is no such setting. */
static ptrdiff_t setting_place(const char *name, void **base) {
    const zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), name, strlen(name));
    if (entry == NULL || entry->mh_arg2 == NULL) {
        return -1;
    }
    *base = entry->mh_arg2;
    return (char *)entry->mh_arg1 - (char *)NULL;
}

/* --- of the running code: intl --- */

typedef struct intl_globals_layout {
    void *current_collator;
    char *default_locale;
    void *compare_func;
    void *grapheme_iterator;
    shim_intl_error g_error;
    zend_long error_level;
    bool use_exceptions;
} intl_globals_layout;

static intl_globals_layout *intl_at;

/* --- of the running code: SOAP. While a call waits, PHP's errors become SOAP faults, and the response is decoded with
 * the values that are installed then. --- */

static size_t align(size_t offset) {
    return ZEND_MM_ALIGNED_SIZE_EX(offset, sizeof(void *));
}

/* Returns the extension's variables; NULL without the extension, or if its settings are not at the expected positions:
 * after those of a call come a mode and a flag, the directory, two numbers. */
static char *find_soap(void) {
    void *base = NULL;
    size_t mode = SHIM_SOAP_TABLES * sizeof(HashTable) + SHIM_SOAP_CALL_SIZE;
    size_t lifetime = align(mode + 2) + sizeof(char *);
    bool known = setting_place("soap.wsdl_cache", &base) == (ptrdiff_t)mode &&
                 setting_place("soap.wsdl_cache_ttl", &base) == (ptrdiff_t)lifetime &&
                 setting_place("soap.wsdl_cache_limit", &base) == (ptrdiff_t)(lifetime + sizeof(zend_long));
    return known ? base : NULL;
}

static void add_soap(add_place add) {
    char *soap = find_soap();
    if (soap == NULL) {
        return;
    }
    add(soap + SHIM_SOAP_TABLES * sizeof(HashTable), SHIM_SOAP_CALL_SIZE);
    /* After the two numbers and a table: encoding, classes, features; after another table: references, and in newer
     * releases of each version the depth of encoding. In other releases, a variable is there that is set once, when PHP
     * starts. */
    size_t encoding = align(SHIM_SOAP_TABLES * sizeof(HashTable) + SHIM_SOAP_CALL_SIZE + 2) + 4 * sizeof(void *);
    size_t features_end = encoding + 3 * sizeof(void *);
    add(soap + encoding, features_end - encoding);
    add(soap + features_end + sizeof(HashTable), 2 * sizeof(void *) + sizeof(int));
}

/* --- of the running code: all --- */

void globals_extensions_running_places(add_place add) {
    intl_at = exact_globals("intl", sizeof *intl_at);
    if (intl_at != NULL) {
        ADD(intl_at->current_collator);
        ADD(intl_at->compare_func);
        ADD(intl_at->g_error);
    }
    add_soap(add);
}

void globals_extensions_running_begin(void) {
    if (intl_at != NULL) {
        memset(&intl_at->g_error, 0, sizeof intl_at->g_error);
    }
}

void globals_extensions_running_end(void) {
    if (intl_at != NULL) {
        shim_intl_error_free(&intl_at->g_error);
    }
}

/* --- of a request: PostgreSQL's links, reused when their arguments match, and the last one --- */

static zend_object **pgsql_last_link;
static HashTable *pgsql_links;

static void find_pgsql(void) {
    char *globals = exact_globals("pgsql", SHIM_PGSQL_SIZE);
    if (globals != NULL) {
        pgsql_last_link = (zend_object **)(void *)(globals + SHIM_PGSQL_LAST_LINK);
        pgsql_links = (HashTable *)(void *)(globals + SHIM_PGSQL_SIZE - sizeof(HashTable));
    }
}

/* --- of a request: zlib's result of checking the client's accepted encodings --- */

typedef struct zlib_globals_layout {
    zend_long output_compression;
    zend_long output_compression_level;
    char *output_handler;
    void *ob_gzhandler;
    zend_long output_compression_default;
    bool handler_registered;
    int compression_coding;
} zlib_globals_layout;

static zlib_globals_layout *zlib_at;

/* --- of a request: mysqli's last connection error, and its reporting mode --- */

typedef struct mysqli_globals_layout {
    zend_long num_links;
    zend_long max_links;
    zend_long num_active_persistent;
    zend_long num_inactive_persistent;
    zend_long max_persistent;
    bool allow_persistent;
    zend_ulong default_port;
    char *default_host;
    char *default_user;
    char *default_pw;
    char *default_socket;
    bool allow_local_infile;
    char *local_infile_directory;
    zend_long error_no;
    char *error_msg;
    zend_long report_mode;
    bool rollback_on_cached_plink;
} mysqli_globals_layout;

static mysqli_globals_layout *mysqli_at;

/* --- of a request: others --- */

/* OpenSSL's errors that the script has not read, the first variable of the extension; newer releases keep a copy after
 * it. */
static void **openssl_errors;
static size_t openssl_lists;
/* The callback of assert_options(), the first variable before those of the settings. */
static zval *assert_callback;
static zend_date_globals *date_at;
#if SHIM_WITH_MBSTRING
static zend_mbstring_globals *mbstring_at;
#endif

static void find_all(void) {
    find_pgsql();
    zlib_at = exact_globals("zlib", sizeof *zlib_at);
    mysqli_at = exact_globals("mysqli", sizeof *mysqli_at);
    openssl_errors = globals_of("openssl", sizeof *openssl_errors);
    openssl_lists = openssl_errors == NULL ? 0 : globals_of("openssl", 2 * sizeof *openssl_errors) == NULL ? 1 : 2;
    void *base = NULL;
    if (setting_place("assert.active", &base) == (ptrdiff_t)(sizeof(zval) + sizeof(char *))) {
        assert_callback = base;
    }
    date_at = globals_of("date", sizeof *date_at);
#if SHIM_WITH_MBSTRING
    mbstring_at = globals_of("mbstring", sizeof *mbstring_at);
#endif
}

void globals_extensions_request_places(add_place add) {
    find_all();
    ADD(FG(default_context));
    SHIM_ADD_LAST_HTTP_HEADERS(add);
    if (pgsql_links != NULL) {
        ADD(*pgsql_last_link);
        ADD(*pgsql_links);
    }
    if (zlib_at != NULL) {
        ADD(zlib_at->ob_gzhandler);
        ADD(zlib_at->handler_registered);
        ADD(zlib_at->compression_coding);
    }
    if (mysqli_at != NULL) {
        ADD(mysqli_at->error_no);
        ADD(mysqli_at->error_msg);
        ADD(mysqli_at->report_mode);
    }
    if (openssl_lists > 0) {
        add(openssl_errors, openssl_lists * sizeof *openssl_errors);
    }
    if (assert_callback != NULL) {
        ADD(*assert_callback);
    }
    if (date_at != NULL) {
        ADD(date_at->timezone);
        ADD(date_at->last_errors);
    }
#if SHIM_WITH_MBSTRING
    if (mbstring_at != NULL) {
        /* Set by mb_internal_encoding() and similar functions, which change no ini setting. They are plain values, so a
         * request inherits them and nothing has to be freed. */
        ADD(mbstring_at->current_internal_encoding);
        ADD(mbstring_at->current_http_output_encoding);
        ADD(mbstring_at->current_filter_illegal_mode);
        ADD(mbstring_at->current_filter_illegal_substchar);
        ADD(mbstring_at->current_detect_order_list);
        ADD(mbstring_at->current_detect_order_list_size);
        SHIM_EACH_MBSTRING_OUTPUT(ADD, mbstring_at);
    }
#endif
}

/* Returns a copy, for the request, of the stream context that the script set while it booted. */
static php_stream_context *copy_of(const php_stream_context *boot) {
    if (boot == NULL || zend_hash_num_elements(Z_ARRVAL(boot->options)) == 0) {
        return NULL;
    }
    php_stream_context *own = php_stream_context_alloc();
    zval_ptr_dtor(&own->options);
    ZVAL_ARR(&own->options, zend_array_dup(Z_ARRVAL(boot->options)));
    return own;
}

void globals_extensions_request_inherit(void) {
    FG(default_context) = copy_of(FG(default_context));
    SHIM_FORGET_LAST_HTTP_HEADERS();
    if (pgsql_links != NULL) {
        /* A connection of the script's boot is used by its arguments, not as the last one. */
        *pgsql_last_link = NULL;
        zend_hash_init(pgsql_links, 0, NULL, NULL, 1);
    }
    if (zlib_at != NULL) {
        zlib_at->ob_gzhandler = NULL;
        zlib_at->handler_registered = false;
        zlib_at->compression_coding = 0;
    }
    if (mysqli_at != NULL) {
        mysqli_at->error_no = 0;
        mysqli_at->error_msg = NULL;
    }
    if (openssl_lists > 0) {
        memset(openssl_errors, 0, openssl_lists * sizeof *openssl_errors);
    }
    if (assert_callback != NULL) {
        Z_TRY_ADDREF_P(assert_callback);
    }
    if (date_at != NULL) {
        date_at->timezone = date_at->timezone != NULL ? estrdup(date_at->timezone) : NULL;
        date_at->last_errors = NULL;
    }
#if SHIM_WITH_MBSTRING
    if (mbstring_at != NULL) {
        const void *boot = mbstring_at->current_detect_order_list;
        size_t size = mbstring_at->current_detect_order_list_size * sizeof *mbstring_at->current_detect_order_list;
        if (boot != NULL) {
            mbstring_at->current_detect_order_list = emalloc(size);
            memcpy((void *)mbstring_at->current_detect_order_list, boot, size);
        }
        SHIM_EACH_MBSTRING_OUTPUT(CLEAR, mbstring_at);
    }
#endif
}

/* timelib's own function for this is not exported; in PHP it allocates from PHP's heap. */
static void free_date_errors(timelib_error_container *errors) {
    for (int i = 0; i < errors->warning_count; i++) {
        efree(errors->warning_messages[i].message);
    }
    for (int i = 0; i < errors->error_count; i++) {
        efree(errors->error_messages[i].message);
    }
    efree(errors->warning_messages);
    efree(errors->error_messages);
    efree(errors);
}

static void destroy_date(void) {
    if (date_at == NULL) {
        return;
    }
    if (date_at->timezone != NULL) {
        efree(date_at->timezone);
        date_at->timezone = NULL;
    }
    if (date_at->last_errors != NULL) {
        free_date_errors(date_at->last_errors);
        date_at->last_errors = NULL;
    }
}

static void end_of_request(const char *extension) {
    const zend_module_entry *module = shim_extension(extension);
    module->request_shutdown_func(module->type, module->module_number);
}

#if SHIM_WITH_MBSTRING
static bool searched;
static zif_handler original_search;

/* mb_ereg_search() keeps the text that it searches. */
static ZEND_NAMED_FUNCTION(watched_search) {
    searched = true;
    original_search(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* Uses the extension's own function: the position of the text varies between versions. */
static void forget_search(void) {
    zval name, text, result;
    ZVAL_STRING(&name, "mb_ereg_search_init");
    ZVAL_EMPTY_STRING(&text);
    if (call_user_function(NULL, NULL, &name, &result, 1, &text) == SUCCESS) {
        zval_ptr_dtor(&result);
    }
    zval_ptr_dtor(&name);
    searched = false;
}
/* Encodings belong to the application, as settings do; the request's detection results do not. */
static void reset_mbstring(void) {
    mbstring_at->illegalchars = 0;
    mbstring_at->http_input_identify = NULL;
    mbstring_at->http_input_identify_get = NULL;
    mbstring_at->http_input_identify_post = NULL;
    mbstring_at->http_input_identify_cookie = NULL;
    mbstring_at->http_input_identify_string = NULL;
    if (searched) {
        forget_search();
    }
}
#endif

static void destroy_mbstring(void) {
#if SHIM_WITH_MBSTRING
    if (mbstring_at == NULL) {
        return;
    }
    if (mbstring_at->current_detect_order_list != NULL) {
        efree((void *)mbstring_at->current_detect_order_list);
        mbstring_at->current_detect_order_list = NULL;
    }
    if (SHIM_MBSTRING_HAS_CONVERTER(mbstring_at)) {
        /* The output ended in the middle: only the extension can free this. */
        end_of_request("mbstring");
    }
    reset_mbstring();
#endif
}

static void destroy_pgsql(void) {
    if (pgsql_links == NULL) {
        return;
    }
    zend_object *last = *pgsql_last_link;
    *pgsql_last_link = NULL;
    if (last != NULL) {
        OBJ_RELEASE(last);
    }
    zend_hash_destroy(pgsql_links);
}

/* Each is one block of memory. */
static void destroy_openssl(void) {
    for (size_t i = 0; i < openssl_lists; i++) {
        free(openssl_errors[i]);
        openssl_errors[i] = NULL;
    }
}

void globals_extensions_request_destroy(void) {
    /* Starts with the values whose release may call into PHP. */
    if (assert_callback != NULL) {
        zval callback = *assert_callback;
        ZVAL_UNDEF(assert_callback);
        zval_ptr_dtor(&callback);
    }
    php_stream_context *context = FG(default_context);
    FG(default_context) = NULL;
    if (context != NULL) {
        zend_list_delete(context->res);
    }
    destroy_pgsql();
    SHIM_FREE_LAST_HTTP_HEADERS();
    if (zlib_at != NULL && zlib_at->ob_gzhandler != NULL) {
        end_of_request("zlib");
    }
    if (mysqli_at != NULL && mysqli_at->error_msg != NULL) {
        efree(mysqli_at->error_msg);
        mysqli_at->error_msg = NULL;
    }
    destroy_openssl();
    destroy_date();
    destroy_mbstring();
}

/* --- one request after the other --- */

/* The context that the script has set for all streams; its options are copied on change. */
static php_stream_context *boot_context;
static zval boot_options;
void globals_extensions_remember(void) {
    find_all();
    intl_at = exact_globals("intl", sizeof *intl_at);
    boot_context = FG(default_context);
    if (boot_context != NULL) {
        GC_ADDREF(boot_context->res);
        ZVAL_COPY(&boot_options, &boot_context->options);
    }
#if SHIM_WITH_MBSTRING
    original_search = shim_watch_function(ZEND_STRL("mb_ereg_search_init"), watched_search);
#endif
}

static void reset_context(void) {
    php_stream_context *context = FG(default_context);
    if (context != boot_context) {
        FG(default_context) = boot_context;
        zend_list_delete(context->res);
    }
    if (boot_context != NULL && Z_ARR(boot_context->options) != Z_ARR(boot_options)) {
        zval_ptr_dtor(&boot_context->options);
        ZVAL_COPY(&boot_context->options, &boot_options);
    }
}

static void reset_errors(void) {
    if (intl_at != NULL && (intl_at->g_error.code != 0 || intl_at->g_error.message != NULL)) {
        shim_intl_error_free(&intl_at->g_error);
        memset(&intl_at->g_error, 0, sizeof intl_at->g_error);
    }
    if (mysqli_at != NULL && (mysqli_at->error_no != 0 || mysqli_at->error_msg != NULL)) {
        if (mysqli_at->error_msg != NULL) {
            efree(mysqli_at->error_msg);
        }
        mysqli_at->error_no = 0;
        mysqli_at->error_msg = NULL;
    }
    if (date_at != NULL && date_at->last_errors != NULL) {
        free_date_errors(date_at->last_errors);
        date_at->last_errors = NULL;
    }
    destroy_openssl();
}

void globals_extensions_reset(void) {
    reset_context();
    reset_errors();
#if SHIM_WITH_MBSTRING
    if (mbstring_at != NULL) {
        reset_mbstring();
    }
#endif
    SHIM_FREE_LAST_HTTP_HEADERS();
    SHIM_FORGET_LAST_HTTP_HEADERS();
}
