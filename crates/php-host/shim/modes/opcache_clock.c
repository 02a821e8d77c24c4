/* OPcache has its own clock: the time at which PHP's request began. That clock decides when a file is checked again
 * (opcache.revalidate_freq seconds later), and that a file changed less than opcache.file_update_protection seconds ago
 * is not cached: OPcache compares whole seconds, so a second change within the same one would never be noticed.
 *
 * A process that stays in one request of PHP has to set that clock itself. Where it cannot, OPcache checks every file
 * at each use, which costs a system call for each directory of its path: after a restore, PHP's realpath cache is that
 * of the snapshot. The same happens while the application boots, because the boot must run the current code.
 *
 * The variable is not exported. It follows OPcache's settings in memory, and is found by a time that no other variable
 * can have: OPcache takes its time from the SAPI when PHP's request begins. */
#include "modes/opcache_clock.h"

#include "shim.h"

#include <time.h>

/* A second of the year 4147: no other variable has that value. */
#define PROBE ((zend_long)68719476736 + 321987)
/* Maximum distance from the settings at which the clock is searched for; OPcache's variables take some ten thousand
 * bytes. */
#define REACH 1024

/* OPcache's clock; NULL: no OPcache, or it was not found. */
static zend_long *clock_of_opcache;
/* opcache.revalidate_freq, OPcache's variable for it, and the operator's value of the setting. */
static const zend_ini_entry *setting;
static zend_long *revalidate;
static zend_long wanted;
/* True while PHP's request begins with the probe time. */
static bool probes;

static void find_setting(void) {
    setting = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("opcache.revalidate_freq"));
    if (setting != NULL && setting->on_modify == OnUpdateLong && setting->mh_arg2 != NULL) {
        revalidate = (zend_long *)((char *)setting->mh_arg2 + (size_t)setting->mh_arg1);
        wanted = *revalidate;
    }
}

void shim_opcache_clock_probe(void) {
    if (revalidate == NULL) {
        find_setting();
    }
    if (revalidate != NULL) {
        *revalidate = 0;
        /* Otherwise $_SERVER, which contains the time, is made before a script runs. */
        probes = PG(auto_globals_jit);
    }
}

bool shim_opcache_clock_probes(double *time) {
    *time = (double)PROBE;
    return probes;
}

void shim_opcache_clock_found(void) {
    clock_of_opcache = NULL;
    if (probes) {
        probes = false;
        SG(global_request_time) = 0;
    }
    for (size_t i = 1; revalidate != NULL && i < REACH / sizeof *revalidate && clock_of_opcache == NULL; i++) {
        if (revalidate[i] == PROBE) {
            clock_of_opcache = &revalidate[i];
            *clock_of_opcache = (zend_long)time(NULL);
        }
    }
}

void shim_opcache_clock_now(void) {
    if (clock_of_opcache != NULL) {
        *clock_of_opcache = (zend_long)(shim.request->received_unix_us / 1000000);
        /* The boot may have set it. */
        *revalidate = setting->modified ? ZEND_STRTOL(ZSTR_VAL(setting->value), NULL, 10) : wanted;
    }
}
