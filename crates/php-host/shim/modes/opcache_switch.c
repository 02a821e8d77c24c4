/* opcache.enable: a script can switch OPcache off for the rest of PHP's request, and only the next request of PHP
 * switches it on again. Where many requests share one request of PHP, that would be permanent, so requests cannot
 * change the setting there: ini_set() returns false. */
#include "modes/opcache_switch.h"

#include "shim.h"
#include "modes/mode.h"
#include "sapi/log.h"

#include <syslog.h>

static ZEND_INI_MH((*change_in_opcache));
static bool reported;

static ZEND_INI_MH(change_unless_another) {
    if (stage == PHP_INI_STAGE_SHUTDOWN || stage == PHP_INI_STAGE_DEACTIVATE) {
        return change_in_opcache(entry, new_value, mh_arg1, mh_arg2, mh_arg3, stage);
    }
    if (entry->value != NULL && zend_ini_parse_bool(new_value) == zend_ini_parse_bool(entry->value)) {
        return SUCCESS;
    }
    if (stage == PHP_INI_STAGE_HTACCESS && !reported) {
        reported = true;
        shim_log(LOG_WARNING, "opcache.enable of an .htaccess file has no effect in %s mode", shim.mode->name);
    }
    return FAILURE;
}

void shim_opcache_stays_on(void) {
    zend_ini_entry *entry = zend_hash_str_find_ptr(EG(ini_directives), ZEND_STRL("opcache.enable"));
    if (entry != NULL && entry->on_modify != NULL && entry->on_modify != change_unless_another) {
        change_in_opcache = entry->on_modify;
        entry->on_modify = change_unless_another;
    }
}
