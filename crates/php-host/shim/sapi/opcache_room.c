/* OPcache does not report that it is full: scripts that do not fit are compiled in each request, which makes an
 * application several times slower. So workers check its free memory from time to time. */
#include "sapi/opcache_room.h"

#include "shim.h"
#include "sapi/log.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <syslog.h>

/* Requests of a worker between two checks. */
#define REQUESTS 256
/* With fewer bytes left, strings of scripts that are compiled later do not fit. */
#define STRINGS_LEFT 4096

enum { MEMORY = 1, SCRIPTS = 2, STRINGS = 4, RESTARTS = 8 };

/* Bits for the warnings that workers of the pool have already logged. */
static atomic_uint *logged;

void shim_opcache_room_startup(void) {
    void *memory = mmap(NULL, sizeof *logged, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    logged = memory == MAP_FAILED ? NULL : memory;
}

static bool is_first(unsigned what) {
    return logged != NULL && (atomic_fetch_or_explicit(logged, what, memory_order_relaxed) & what) == 0;
}

static zend_long number_in(const zval *status, const char *group, const char *name) {
    const zval *table = zend_hash_str_find(Z_ARRVAL_P(status), group, strlen(group));
    const zval *number =
        table != NULL && Z_TYPE_P(table) == IS_ARRAY ? zend_hash_str_find(Z_ARRVAL_P(table), name, strlen(name)) : NULL;
    return number != NULL && Z_TYPE_P(number) == IS_LONG ? Z_LVAL_P(number) : 0;
}

static void check_usage(const zval *status) {
    const zval *full = zend_hash_str_find(Z_ARRVAL_P(status), ZEND_STRL("cache_full"));
    const zend_long scripts = number_in(status, "opcache_statistics", "num_cached_keys");
    const zend_long most = number_in(status, "opcache_statistics", "max_cached_keys");
    const zend_long restarts = number_in(status, "opcache_statistics", "oom_restarts") +
                               number_in(status, "opcache_statistics", "hash_restarts");
    const char *effect = "scripts without room are compiled in each request";
    if (most > 0 && scripts >= most) {
        if (is_first(SCRIPTS)) {
            shim_log(LOG_WARNING, "OPcache is full (%ld names of scripts): %s; raise opcache.max_accelerated_files",
                     (long)scripts, effect);
        }
    } else if (full != NULL && Z_TYPE_P(full) == IS_TRUE && is_first(MEMORY)) {
        shim_log(LOG_WARNING, "OPcache is full (%ld MiB): %s; raise opcache.memory_consumption",
                 (long)(number_in(status, "memory_usage", "used_memory") >> 20), effect);
    }
    const zend_long strings = number_in(status, "interned_strings_usage", "buffer_size");
    if (strings > 0 && number_in(status, "interned_strings_usage", "free_memory") < STRINGS_LEFT && is_first(STRINGS)) {
        shim_log(LOG_WARNING, "OPcache's buffer for strings is full (%ld MiB): raise opcache.interned_strings_buffer",
                 (long)(strings >> 20));
    }
    if (restarts > 0 && is_first(RESTARTS)) {
        shim_log(LOG_WARNING, "OPcache was full and has restarted: raise opcache.memory_consumption or "
                              "opcache.max_accelerated_files");
    }
}

void shim_opcache_room_check(void) {
    const char *restricted = INI_STR("opcache.restrict_api");
    if (EG(exception) != NULL || CG(unclean_shutdown) || (restricted != NULL && *restricted != '\0') ||
        !zend_hash_str_exists(EG(function_table), ZEND_STRL("opcache_get_status"))) {
        return;
    }
    zval function, scripts, status;
    ZVAL_STRINGL(&function, "opcache_get_status", sizeof "opcache_get_status" - 1);
    ZVAL_FALSE(&scripts);
    ZVAL_UNDEF(&status);
    if (call_user_function(NULL, NULL, &function, &status, 1, &scripts) == SUCCESS && Z_TYPE(status) == IS_ARRAY) {
        check_usage(&status);
    }
    zval_ptr_dtor(&status);
    zval_ptr_dtor(&function);
}

void shim_opcache_room_check_sometimes(void) {
    if ((shim.requests_done + 1) % REQUESTS == 0) {
        shim_opcache_room_check();
    }
}
