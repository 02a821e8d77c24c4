/* Settings that a request changes with ini_set() and the like apply to that request. PHP has one value for the process,
 * so the changes are reverted when another request runs and applied again when this one continues. A request without
 * changes costs one comparison.
 *
 * Both directions use PHP's stage for the end of a request: otherwise settings of a session or of output would refuse
 * to change once headers are sent. An open session forbids changes of its settings in every stage, so it is hidden. */
#include "async/isolation/ini.h"

#include "shim.h"

struct async_ini_change {
    async_ini_change *next;
    zend_string *name;
    zend_string *value;
};

/* Value while no setting is changed; negative before serving begins. */
static int usual_error_reporting = -1;

/* Settings that the script changed while it booted stay: with the marks removed, PHP treats them as the configured
 * values. */
void async_ini_startup(void) {
    usual_error_reporting = EG(error_reporting);
    if (EG(modified_ini_directives) == NULL) {
        return;
    }
    zend_ini_entry *entry;
    ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
        if (entry->orig_value != NULL && entry->orig_value != entry->value) {
            zend_string_release(entry->orig_value);
        }
        entry->modifiable = entry->orig_modifiable;
        entry->modified = 0;
        entry->orig_value = NULL;
        entry->orig_modifiable = 0;
    }
    ZEND_HASH_FOREACH_END();
    zend_hash_destroy(EG(modified_ini_directives));
    FREE_HASHTABLE(EG(modified_ini_directives));
    EG(modified_ini_directives) = NULL;
}

int async_ini_error_reporting(void) {
    if (EG(modified_ini_directives) == NULL && usual_error_reporting >= 0) {
        return usual_error_reporting;
    }
    const char *value = zend_ini_string(ZEND_STRL("error_reporting"), 0);
    return value == NULL || *value == '\0' ? E_ALL : (int)zend_ini_long(ZEND_STRL("error_reporting"), 0);
}

/* Checks that session settings make before they change; session handlers may be the script's own. */
typedef struct session_guards {
    php_session_status status;
    bool own_handler;
} session_guards;

static session_guards hide_session(void) {
    session_guards guards = {php_session_none, false};
    if (SHIM_HAS_SESSION()) {
        guards = (session_guards){PS(session_status), PS(set_handler)};
        PS(session_status) = php_session_none;
        PS(set_handler) = true;
    }
    return guards;
}

static void show_session(session_guards guards) {
    if (SHIM_HAS_SESSION()) {
        PS(session_status) = guards.status;
        PS(set_handler) = guards.own_handler;
    }
}

async_ini_change *async_ini_take(void) {
    if (EG(modified_ini_directives) == NULL) {
        return NULL;
    }
    session_guards guards = hide_session();
    async_ini_change *changes = NULL;
    zend_ini_entry *entry;
    ZEND_HASH_FOREACH_PTR(EG(modified_ini_directives), entry) {
        async_ini_change *change = emalloc(sizeof *change);
        change->next = changes;
        change->name = zend_string_copy(entry->name);
        change->value = entry->value != NULL ? zend_string_copy(entry->value) : ZSTR_EMPTY_ALLOC();
        changes = change;
    }
    ZEND_HASH_FOREACH_END();
    zend_ini_deactivate();
    show_session(guards);
    return changes;
}

void async_ini_apply(async_ini_change *changes) {
    session_guards guards = hide_session();
    while (changes != NULL) {
        async_ini_change *change = changes;
        changes = change->next;
        zend_alter_ini_entry_ex(change->name, change->value, PHP_INI_USER, PHP_INI_STAGE_DEACTIVATE, true);
        zend_string_release(change->name);
        zend_string_release(change->value);
        efree(change);
    }
    show_session(guards);
}

void async_ini_forget(void) {
    if (EG(modified_ini_directives) != NULL) {
        session_guards guards = hide_session();
        zend_ini_deactivate();
        show_session(guards);
    }
}
