/* Everything that depends on PHP's version. The shim supports PHP 8.2 to 8.5, not thread-safe (NTS). All other files
 * use the names defined here and contain no version conditions. */
#ifndef HOWDAH_COMPAT_H
#define HOWDAH_COMPAT_H

/* The extension headers that were found at build time; see src/extension_headers.rs. */
#if !defined(SHIM_WITH_PDO) || !defined(SHIM_WITH_MBSTRING) || !defined(SHIM_WITH_MYSQLI)
#error "compile with -DSHIM_WITH_PDO=1 (or 0) and the like for each line of src/extension_headers.rs"
#endif

/* PHP's headers use GNU extensions and leave parameters unused; the shim cannot fix these warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wcast-function-type"
#include <dlfcn.h>
#include <php.h>
#include <SAPI.h>
#include <php_ini.h>
#include <php_main.h>
#include <php_output.h>
#include <php_variables.h>
#include <zend_exceptions.h>
#include <zend_ini.h>
#include <zend_signal.h>
#include <zend_smart_str.h>
#include <ext/json/php_json.h>
#include <ext/random/php_random.h>
#include <ext/session/php_session.h>
#include <ext/spl/spl_exceptions.h>
#include <ext/standard/head.h>
#include <ext/standard/info.h>
#pragma GCC diagnostic pop

#if PHP_VERSION_ID < 80200 || PHP_VERSION_ID >= 80600
#error "Howdah's PHP host is written for PHP 8.2 to 8.5"
#endif
#ifdef ZTS
#error "Howdah's PHP host needs a PHP that is not thread-safe (NTS)"
#endif

/* Returns the version of the loaded libphp, in PHP_VERSION_ID's form. 8.2 has no function that reports it before PHP
 * has started. A version older than 8.2 lacks functions that this program imports, so the dynamic linker refuses it. */
static inline uint32_t shim_compat_loaded_version(void) {
    unsigned int (*ask)(void) = (unsigned int (*)(void))dlsym(RTLD_DEFAULT, "php_version_id");
    return ask != NULL ? ask() : 80200;
}

/* Returns the version of the loaded libphp, which may be a later patch release than its headers. PHP must have
 * started. */
static inline const char *shim_compat_php_version(void) {
    const zval *version = zend_get_constant_str(ZEND_STRL("PHP_VERSION"));
    return version != NULL ? Z_STRVAL_P(version) : PHP_VERSION;
}

/* SAPI.h before 8.3 declares sapi_module.ini_entries without const; PHP never writes to it. */
#if PHP_VERSION_ID < 80300
#define SHIM_INI_ENTRIES(text) ((char *)(text))
#else
#define SHIM_INI_ENTRIES(text) (text)
#endif

/* Before 8.4, userland's default seed is in RANDOM_G alone. 8.4 adds a state that seeds are derived from when the
 * kernel provides no random bytes. Both must differ between forks. */
static inline void shim_compat_forget_random_state(void) {
    RANDOM_G(combined_lcg_seeded) = false;
    RANDOM_G(mt19937_seeded) = false;
#if PHP_VERSION_ID >= 80400
    RANDOM_G(fallback_seed_state).initialized = false;
#endif
}

/* Some builds of 8.2 (such as Debian's) report an exhausted memory limit late and set a flag. While the flag is set,
 * PHP calls no function. This clears it at the end of a request, before shutdown functions run. */
static inline void shim_compat_forget_exhausted_memory(void) {
#ifdef ZEND_HAS_OOM
    EG(delayed_oom).state = ZEND_OOM_STATE_NONE;
#endif
}

/* A PHP without ext/session lacks these symbols; the shim checks before it uses them. */
#pragma weak ps_globals
#pragma weak php_session_start
#define SHIM_HAS_SESSION() (&ps_globals != NULL)

/* Seeds lcg_value() and its users. PHP seeds from the current microsecond, which is only good enough for one seeding
 * per process. */
static inline void shim_compat_seed_combined_lcg(uint32_t first, uint32_t second) {
#if PHP_VERSION_ID >= 80400
    int32_t *state = RANDOM_G(combined_lcg);
#else
    int32_t *state = ((php_random_status_state_combinedlcg *)RANDOM_G(combined_lcg)->state)->state;
#endif
    /* The moduli of the two generators, minus one. */
    state[0] = (int32_t)(first % 2147483562u + 1);
    state[1] = (int32_t)(second % 2147483398u + 1);
    RANDOM_G(combined_lcg_seeded) = true;
}

/* Code on a separate stack must set its limits for PHP 8.3 and later; 8.2 does not check. */
#ifdef ZEND_CHECK_STACK_LIMIT
#define SHIM_USE_STACK_LIMITS(stack)                                                                                   \
    (EG(stack_base) = zend_fiber_stack_base(stack), EG(stack_limit) = zend_fiber_stack_limit(stack))
#else
#define SHIM_USE_STACK_LIMITS(stack) ((void)(stack))
#endif

/* Some builds set a flag when memory runs out and let the script unwind. PHP clears the flag only at the end of its
 * request. */
#ifdef ZEND_HAS_OOM
#define SHIM_RAN_OUT_OF_MEMORY() ZEND_HAS_OOM()
static inline void shim_compat_forget_out_of_memory(void) {
    if (EG(delayed_oom).message != NULL) {
        zend_string_release(EG(delayed_oom).message);
    }
    if (EG(delayed_oom).filename != NULL) {
        zend_string_release(EG(delayed_oom).filename);
    }
    memset(&EG(delayed_oom), 0, sizeof EG(delayed_oom));
}
#else
#define SHIM_RAN_OUT_OF_MEMORY() false
static inline void shim_compat_forget_out_of_memory(void) {
}
#endif

/* Layouts of variables that extensions do not export (globals/extensions.c). */

/* SOAP: the number of tables before the variables that a call sets, and the size of those variables, up to the setting
 * soap.wsdl_cache. */
#define SHIM_SOAP_TABLES (PHP_VERSION_ID >= 80500 ? 0 : 3)
#define SHIM_SOAP_CALL_SIZE (PHP_VERSION_ID >= 80400 ? 49 : 57)

/* PostgreSQL: offset of the last link, and the size of all globals, which end with the table of links. */
#define SHIM_PGSQL_LAST_LINK (PHP_VERSION_ID >= 80500 ? 40 : 56)
#define SHIM_PGSQL_SIZE                                                                                                \
    (PHP_VERSION_ID >= 80500   ? 48 + 11 * sizeof(void *) + 8 + 3 * sizeof(HashTable)                                  \
     : PHP_VERSION_ID >= 80400 ? 64 + 11 * sizeof(void *) + 3 * sizeof(HashTable)                                      \
                               : 64 + 3 * sizeof(HashTable))

/* intl's last error. */
#if PHP_VERSION_ID >= 80500
typedef struct shim_intl_error {
    zend_string *message;
    int code;
} shim_intl_error;
static inline void shim_intl_error_free(shim_intl_error *error) {
    if (error->message != NULL) {
        zend_string_release(error->message);
    }
}
#else
typedef struct shim_intl_error {
    int code;
    int message_is_own;
    char *message;
} shim_intl_error;
static inline void shim_intl_error_free(shim_intl_error *error) {
    if (error->message_is_own && error->message != NULL) {
        efree(error->message);
    }
}
#endif

/* The entity loader function that libxml calls. */
#if PHP_VERSION_ID >= 80300
typedef zend_fcall_info_cache shim_entity_loader;
static inline void shim_entity_loader_addref(shim_entity_loader *loader) {
    if (ZEND_FCC_INITIALIZED(*loader)) {
        zend_fcc_addref(loader);
    }
}
static inline void shim_entity_loader_free(shim_entity_loader *loader) {
    if (ZEND_FCC_INITIALIZED(*loader)) {
        zend_fcc_dtor(loader);
    }
}
#else
typedef struct shim_entity_loader {
    zval callback;
    zend_fcall_info info;
    zend_fcall_info_cache cache;
} shim_entity_loader;
static inline void shim_entity_loader_addref(shim_entity_loader *loader) {
    Z_TRY_ADDREF(loader->callback);
}
static inline void shim_entity_loader_free(shim_entity_loader *loader) {
    zval callback = loader->callback;
    loader->info.size = 0;
    ZVAL_NULL(&loader->callback);
    zval_ptr_dtor(&callback);
}
#endif

/* The connection of a PDO statement, if it has one. The including file needs ext/pdo/php_pdo_driver.h. */
#if PHP_VERSION_ID >= 80500
#define SHIM_PDO_CONNECTION(statement) ((statement)->database_object_handle)
#else
#define SHIM_PDO_CONNECTION(statement)                                                                                 \
    (Z_TYPE((statement)->database_object_handle) == IS_OBJECT ? Z_OBJ((statement)->database_object_handle) : NULL)
#endif

/* Output kept by mb_output_handler(): a converter until 8.2, numbers since. The including file needs
 * ext/mbstring/mbstring.h. */
#if PHP_VERSION_ID >= 80300
#define SHIM_EACH_MBSTRING_OUTPUT(each, globals)                                                                       \
    do {                                                                                                               \
        each((globals)->outconv_enabled);                                                                              \
        each((globals)->outconv_state);                                                                                \
    } while (0)
#define SHIM_MBSTRING_HAS_CONVERTER(globals) false
#else
#define SHIM_EACH_MBSTRING_OUTPUT(each, globals) each((globals)->outconv)
#define SHIM_MBSTRING_HAS_CONVERTER(globals) ((globals)->outconv != NULL)
#endif

/* Result of http_get_last_response_headers(), from 8.4 on. The including file needs ext/standard/basic_functions.h. */
#if PHP_VERSION_ID >= 80400
#define SHIM_ADD_LAST_HTTP_HEADERS(add) add(&BG(last_http_headers), sizeof BG(last_http_headers))
#define SHIM_FORGET_LAST_HTTP_HEADERS() ZVAL_UNDEF(&BG(last_http_headers))
#define SHIM_FREE_LAST_HTTP_HEADERS() zval_ptr_dtor(&BG(last_http_headers))
#else
#define SHIM_ADD_LAST_HTTP_HEADERS(add) ((void)0)
#define SHIM_FORGET_LAST_HTTP_HEADERS() ((void)0)
#define SHIM_FREE_LAST_HTTP_HEADERS() ((void)0)
#endif

/* Calls a registered shutdown function. The including file needs ext/standard/basic_functions.h. */
#if PHP_VERSION_ID >= 80500
#define SHIM_CALL_SHUTDOWN_FUNCTION(entry, result)                                                                     \
    zend_call_known_fcc(&(entry)->fci_cache, result, (entry)->param_count, (entry)->params, NULL)
#else
#define SHIM_CALL_SHUTDOWN_FUNCTION(entry, result)                                                                     \
    ((entry)->fci.retval = (result), (void)zend_call_function(&(entry)->fci, &(entry)->fci_cache))
#endif

/* The beginning of the file name of the library that OPcache is in. */
#define SHIM_OPCACHE_LIBRARY (PHP_VERSION_ID >= 80500 ? "libphp" : "opcache")

/* Makes PHP call zend_interrupt_function soon, between two of its instructions. */
#define SHIM_REQUEST_INTERRUPT() zend_atomic_bool_store_ex(&EG(vm_interrupt), true)

/* PHP built with --enable-zend-signals (as all of Debian's are) handles seven signals itself; other builds have none of
 * these symbols. */
#ifdef ZEND_SIGNALS
#define SHIM_SIGNALS_STARTUP() zend_signal_startup()
#define SHIM_SIGNALS_KEEP_HANDLERS() (SIGG(reset) = false)
#define SHIM_SIGNALS_INSTALL_HANDLERS() (SIGG(reset) = true)
#else
#define SHIM_SIGNALS_STARTUP() ((void)0)
#define SHIM_SIGNALS_KEEP_HANDLERS() ((void)0)
#define SHIM_SIGNALS_INSTALL_HANDLERS() ((void)0)
#endif

#endif
