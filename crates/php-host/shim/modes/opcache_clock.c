/* OPcache does not cache a file that changed less than opcache.file_update_protection seconds before the request: it
 * compares whole seconds, so a second change within the same one would never be seen. The time of the request is
 * OPcache's own, set when PHP's request begins. Where that was at the boot, no file that was written since would ever
 * be cached, and without the protection an application that writes its settings twice in a second is served the first
 * ones until it writes them again. So the protection is moved instead, by what has passed since. */
#include "modes/opcache_clock.h"

#include "shim.h"

#include <time.h>

/* OPcache's variable behind the setting; NULL: no OPcache, or nothing is protected. */
static zend_long *protection;
/* The setting as the operator has it. */
static zend_long wanted;
/* OPcache's time; a second too late only protects for longer. */
static zend_long stopped_at;

void shim_opcache_clock_stops(void) {
    stopped_at = (zend_long)time(NULL);
    if (protection != NULL) {
        return;
    }
    const zend_ini_entry *entry =
        zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("opcache.file_update_protection"));
    if (entry == NULL || entry->on_modify != OnUpdateLong || entry->mh_arg2 == NULL) {
        return;
    }
    zend_long *place = (zend_long *)((char *)entry->mh_arg2 + (size_t)entry->mh_arg1);
    if (*place > 0) {
        protection = place;
        wanted = *place;
    }
}

void shim_opcache_clock_now(void) {
    if (protection == NULL) {
        return;
    }
    const zend_long passed = (zend_long)(shim.request->received_unix_us / 1000000) - stopped_at;
    const zend_long moved = wanted - passed;
    /* 0 would switch it off. */
    *protection = moved != 0 ? moved : 1;
}
