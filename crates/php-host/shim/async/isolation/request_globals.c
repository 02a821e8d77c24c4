/* PHP's globals that belong to a request: superglobals and the global scope, headers and status, error handlers,
 * shutdown functions, session, the input of filter_input(). While a request does not run, they are in its image. They
 * are moved only when another request's coroutine runs, and moving is copying a list of variables.
 *
 * The requests of a worker share everything else in PHP, by design: classes and their statics, functions, constants,
 * included files, connections, the autoloader. docs/guide/async.md has the list. */
#include "async/isolation/request_globals.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/request.h"
#include "globals/extensions.h"
#include "async/isolation/ini.h"
#include "globals/libraries.h"
#include "async/isolation/swap_list.h"
#include "modes/reset.h"
#include "sapi/current_request.h"

#include <ext/filter/php_filter.h>
#include <ext/standard/basic_functions.h>
#include <stddef.h>
#include <string.h>

static swap_list all;

/* The request whose globals are installed: NULL for the script's own between requests. */
static async_request *loaded;
/* True if the request whose globals are installed has ended: they need not be saved. */
static bool discarded;
static unsigned char *base_image;

/* Those of ext/filter; NULL without it. */
static zval *filter_arrays;
#define FILTER_ARRAYS 5

/* Names of superglobals that each request has separately; $_ENV is the same for all. */
static zend_string *own_superglobals[7];

/* PHP makes these for a request when code that names them is compiled (auto_globals_jit). */
static zend_auto_global *made_late[2];

static void add(void *at, size_t size) {
    swap_list_add(&all, at, size);
}
#define ADD(variable) add(&(variable), sizeof(variable))

static void add_session(void) {
    if (!SHIM_HAS_SESSION()) {
        return;
    }
    ADD(PS(id));
    ADD(PS(mod));
    ADD(PS(mod_data));
    ADD(PS(session_status));
    ADD(PS(mod_user_names));
    ADD(PS(mod_user_implemented));
    ADD(PS(mod_user_is_open));
    ADD(PS(mod_user_class_name));
    ADD(PS(http_session_vars));
    ADD(PS(send_cookie));
    ADD(PS(define_sid));
    ADD(PS(rfc1867_progress));
    ADD(PS(in_save_handler));
    ADD(PS(set_handler));
    ADD(PS(session_vars));
}

/* ext/filter does not export its globals, but its ini entry points at them. */
static void add_filter(void) {
    const zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("filter.default"));
    if (entry != NULL && entry->mh_arg2 != NULL) {
        filter_arrays = (zval *)entry->mh_arg2;
        add(filter_arrays, FILTER_ARRAYS * sizeof(zval));
    }
}

void async_image_startup(void) {
    ADD(EG(symbol_table));
    ADD(EG(user_error_handler_error_reporting));
    ADD(EG(user_error_handler));
    ADD(EG(user_exception_handler));
    ADD(EG(user_error_handlers_error_reporting));
    ADD(EG(user_error_handlers));
    ADD(EG(user_exception_handlers));
    ADD(EG(exit_status));
    ADD(PG(connection_status));
    ADD(PG(ignore_user_abort));
    ADD(PG(header_is_being_sent));
    ADD(PG(http_globals));
    ADD(PG(last_error_type));
    ADD(PG(last_error_message));
    ADD(PG(last_error_file));
    ADD(PG(last_error_lineno));
    ADD(PG(in_user_include));
    ADD(PG(in_error_log));
    /* The start of a request can wait for a session's lock. */
    ADD(PG(during_request_startup));
    ADD(PG(modules_activated));
    ADD(SG(server_context));
    ADD(SG(request_info));
    ADD(SG(sapi_headers));
    ADD(SG(read_post_bytes));
    ADD(SG(post_read));
    ADD(SG(headers_sent));
    ADD(SG(rfc1867_uploaded_files));
    ADD(SG(global_request_time));
    ADD(SG(callback_func));
    ADD(SG(fci_cache));
    ADD(BG(user_shutdown_function_names));
    ADD(BG(strtok_string));
    ADD(BG(strtok_last));
    /* Not strtok_table: each strtok() leaves it empty. */
    ADD(BG(strtok_len));
    add(&shim.request, offsetof(shim_state, requests_done) - offsetof(shim_state, request));
    globals_libraries_places(add);
    globals_extensions_request_places(add);
    add_session();
    add_filter();
    base_image = pemalloc(swap_list_size(&all), 1);
    static const char *const names[] = {"_GET", "_POST", "_COOKIE", "_FILES", "_SERVER", "_REQUEST", "_SESSION"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        own_superglobals[i] = zend_string_init_interned(names[i], strlen(names[i]), 1);
    }
    /* Shared by all requests, so it must not be created by the first request that uses it. */
    zend_is_auto_global_str(ZEND_STRL("_ENV"));
    made_late[0] = zend_hash_str_find_ptr(CG(auto_globals), ZEND_STRL("_SERVER"));
    made_late[1] = zend_hash_str_find_ptr(CG(auto_globals), ZEND_STRL("_REQUEST"));
}

/* Returns, as bits, the superglobals that some code names. Such code stays compiled, so later requests begin with
 * them. */
static uint8_t named_superglobals(void) {
    uint8_t named = 0;
    for (int i = 0; i < 2; i++) {
        named |= (uint8_t)(!(made_late[i]->jit && made_late[i]->armed) << i);
    }
    return named;
}

/* Creates superglobals that code of another request was the first to name; the current request may call that code. */
static void make_superglobals(async_request *request) {
    uint8_t named = named_superglobals();
    for (int i = 0; i < 2; i++) {
        if ((named & ~request->superglobals & 1 << i) != 0) {
            made_late[i]->auto_global_callback(made_late[i]->name);
        }
    }
    request->superglobals = named;
}

size_t async_image_size(void) {
    return swap_list_size(&all);
}

static void inherit(void);

void async_request_load(async_request *request) {
    if (request == loaded && !discarded) {
        return;
    }
    if (!discarded) {
        if (loaded != NULL) {
            loaded->ini_changes = async_ini_take();
            loaded->superglobals = named_superglobals();
        }
        swap_list_save(&all, loaded != NULL ? loaded->image : base_image);
    }
    discarded = false;
    loaded = request;
    shim_reset_file_status();
    globals_libraries_forget_xml_error();
    howdah_rs_select_request(request != NULL ? request->number : 0);
    if (request == NULL) {
        swap_list_load(&all, base_image);
    } else if (request->encoded != NULL) {
        /* The request begins. */
        swap_list_load(&all, base_image);
        inherit();
        shim_request_set(request->encoded);
        request->encoded = NULL;
        request->superglobals = named_superglobals();
    } else {
        swap_list_load(&all, request->image);
        if (request->ini_changes != NULL) {
            async_ini_change *changes = request->ini_changes;
            request->ini_changes = NULL;
            async_ini_apply(changes);
        }
        if (request->superglobals != named_superglobals()) {
            make_superglobals(request);
        }
    }
}

static void copy_stack(zend_stack *stack, bool of_zvals) {
    zend_stack copy = *stack;
    if (stack->max > 0) {
        copy.elements = safe_emalloc((size_t)stack->max, (size_t)stack->size, 0);
        memcpy(copy.elements, stack->elements, (size_t)stack->top * (size_t)stack->size);
    }
    for (int i = 0; of_zvals && i < copy.top; i++) {
        Z_TRY_ADDREF(((zval *)copy.elements)[i]);
    }
    *stack = copy;
}

static bool is_superglobal(const zend_string *name) {
    for (size_t i = 0; ZSTR_VAL(name)[0] == '_' && i < sizeof own_superglobals / sizeof *own_superglobals; i++) {
        if (zend_string_equals(name, own_superglobals[i])) {
            return true;
        }
    }
    return false;
}

/* The global scope of a request: the script's variables as they are between requests. Each request has its own copies
 * of scalars and arrays; objects are shared. */
static void inherit_symbols(void) {
    /* The table is moved by value; the script's own stays in the base image. */
    HashTable boot_table = EG(symbol_table);
    HashTable *boot = &boot_table;
    zend_hash_init(&EG(symbol_table), 16, NULL, ZVAL_PTR_DTOR, 0);
    zend_hash_real_init_mixed(&EG(symbol_table));
    zend_string *name;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL_IND(boot, name, value) {
        if (name == NULL) {
            continue;
        }
        if (is_superglobal(name)) {
            continue;
        }
        ZVAL_DEREF(value);
        Z_TRY_ADDREF_P(value);
        zend_hash_add_new(&EG(symbol_table), name, value);
    }
    ZEND_HASH_FOREACH_END();
}

/* Copies the base state into the request: takes references and copies while the base globals are installed. */
static void inherit(void) {
    inherit_symbols();
    Z_TRY_ADDREF(EG(user_error_handler));
    Z_TRY_ADDREF(EG(user_exception_handler));
    copy_stack(&EG(user_error_handlers_error_reporting), false);
    copy_stack(&EG(user_error_handlers), true);
    copy_stack(&EG(user_exception_handlers), true);
    for (int i = 0; i < TRACK_VARS_REQUEST; i++) {
        if (i == TRACK_VARS_ENV) {
            Z_TRY_ADDREF(PG(http_globals)[i]);
        } else {
            ZVAL_UNDEF(&PG(http_globals)[i]);
        }
    }
    PG(last_error_message) = NULL;
    PG(last_error_file) = NULL;
    BG(user_shutdown_function_names) = NULL;
    BG(strtok_string) = NULL;
    globals_libraries_inherit();
    globals_extensions_request_inherit();
    if (SHIM_HAS_SESSION()) {
        zval *names = (zval *)&PS(mod_user_names);
        for (size_t i = 0; i < sizeof PS(mod_user_names) / sizeof(zval); i++) {
            Z_TRY_ADDREF(names[i]);
        }
        if (PS(mod_user_class_name) != NULL) {
            zend_string_addref(PS(mod_user_class_name));
        }
    }
    for (int i = 0; filter_arrays != NULL && i < FILTER_ARRAYS; i++) {
        ZVAL_UNDEF(&filter_arrays[i]);
    }
}

static void destroy_session(void) {
    if (!SHIM_HAS_SESSION()) {
        return;
    }
    zval *names = (zval *)&PS(mod_user_names);
    for (size_t i = 0; i < sizeof PS(mod_user_names) / sizeof(zval); i++) {
        zval_ptr_dtor(&names[i]);
        ZVAL_UNDEF(&names[i]);
    }
    if (PS(mod_user_class_name) != NULL) {
        zend_string_release(PS(mod_user_class_name));
        PS(mod_user_class_name) = NULL;
    }
}

/* Detached first: they may hold objects whose destructors throw, wait, or set handlers themselves. */
static void destroy_handlers(void) {
    zval handlers[] = {EG(user_error_handler), EG(user_exception_handler)};
    zend_stack stacks[] = {EG(user_error_handlers), EG(user_exception_handlers)};
    ZVAL_UNDEF(&EG(user_error_handler));
    ZVAL_UNDEF(&EG(user_exception_handler));
    zend_stack_init(&EG(user_error_handlers), sizeof(zval));
    zend_stack_init(&EG(user_exception_handlers), sizeof(zval));
    for (int i = 0; i < 2; i++) {
        zval_ptr_dtor(&handlers[i]);
        zend_stack_clean(&stacks[i], (void (*)(void *))ZVAL_PTR_DTOR, 1);
    }
    zend_stack_destroy(&EG(user_error_handlers_error_reporting));
}

/* Destructors may still look up globals and create new ones. */
static void empty_symbols(void) {
    zend_hash_graceful_reverse_destroy(&EG(symbol_table));
    zend_hash_init(&EG(symbol_table), 0, NULL, ZVAL_PTR_DTOR, 0);
}

static void release(zend_string **string) {
    if (*string != NULL) {
        zend_string_release(*string);
        *string = NULL;
    }
}

void async_image_destroy(void) {
    async_ini_forget();
    /* First everything whose destruction may call into PHP: code that runs there finds valid, if empty, globals. */
    destroy_handlers();
    empty_symbols();
    for (int i = 0; i < TRACK_VARS_REQUEST; i++) {
        zval_ptr_dtor(&PG(http_globals)[i]);
        ZVAL_UNDEF(&PG(http_globals)[i]);
    }
    destroy_session();
    globals_libraries_destroy();
    globals_extensions_request_destroy();
    /* Then everything that such code may have left, too. */
    empty_symbols();
    release(&PG(last_error_message));
    release(&PG(last_error_file));
    release(&BG(strtok_string));
}

void async_image_drop(void) {
    discarded = true;
    shim.request = NULL;
}
