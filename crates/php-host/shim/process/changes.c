/* Changes that scripts make to their process and that PHP does not undo: user, groups, session, limits, priority,
 * namespaces, signals. A process that was changed in this way serves no other request. The calls are rare and are
 * intercepted, so a request without them costs nothing. Changes by the application before its first request stay. */
#include "process/changes.h"

#include "shim.h"
#include "modes/mode.h"
#include "sapi/watch_function.h"

#include <signal.h>
#include <string.h>

typedef struct watched {
    const char *name;
    const char *changes;
    bool signals;
    zif_handler original;
} watched;

static watched functions[] = {
    {"pcntl_alarm", "an alarm", true, NULL},
    {"pcntl_setcpuaffinity", "its processors", false, NULL},
    {"pcntl_setns", "its namespaces", false, NULL},
    {"pcntl_setpriority", "its priority", false, NULL},
    {"pcntl_signal", "handlers of signals", true, NULL},
    {"pcntl_sigprocmask", "its signal mask", true, NULL},
    {"pcntl_unshare", "its namespaces", false, NULL},
    {"posix_initgroups", "its groups", false, NULL},
    {"posix_setegid", "its group", false, NULL},
    {"posix_seteuid", "its user", false, NULL},
    {"posix_setgid", "its group", false, NULL},
    {"posix_setpgid", "its process group", false, NULL},
    {"posix_setrlimit", "its limits", false, NULL},
    {"posix_setsid", "its session", false, NULL},
    {"posix_setuid", "its user", false, NULL},
    {"proc_nice", "its priority", false, NULL},
};

static const char *changed;

/* The signal mask before the request's first call of pcntl_sigprocmask(). Scripts also use that to read the mask and to
 * block signals temporarily, so only a mask that stays counts as a change. */
static sigset_t mask_before;
static bool mask_known;

static bool mask_differs(void) {
    sigset_t now;
    sigprocmask(SIG_SETMASK, NULL, &now);
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&now, number) != sigismember(&mask_before, number)) {
            return true;
        }
    }
    return false;
}

static const watched *entry_of(const zend_execute_data *execute_data) {
    const char *name = ZSTR_VAL(execute_data->func->common.function_name);
    const watched *entry = functions;
    while (strcmp(entry->name, name) != 0) {
        entry++;
    }
    return entry;
}

static ZEND_NAMED_FUNCTION(changes_process) {
    const watched *entry = entry_of(execute_data);
    const bool masks = strcmp(entry->name, "pcntl_sigprocmask") == 0;
    if (masks && shim.request != NULL && !shim.script_child && !mask_known) {
        mask_known = sigprocmask(SIG_SETMASK, NULL, &mask_before) == 0;
    }
    entry->original(INTERNAL_FUNCTION_PARAM_PASSTHRU);
    if (masks) {
        return;
    }
    const bool refused = Z_TYPE_P(return_value) == IS_FALSE || EG(exception) != NULL;
    if (refused || shim.request == NULL || shim.script_child || (entry->signals && shim.mode->restores_signals)) {
        return;
    }
    changed = entry->changes;
    if (shim.mode->process_changed != NULL) {
        shim.mode->process_changed(changed);
    }
}

void shim_changes_watch(void) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        functions[i].original = shim_watch_function(functions[i].name, strlen(functions[i].name), changes_process);
    }
}

const char *shim_changes_left(void) {
    if (shim.mode->process_changed != NULL) {
        return NULL;
    }
    if (changed == NULL && mask_known && mask_differs()) {
        changed = "its signal mask";
    }
    mask_known = false;
    return changed;
}

bool shim_calls_unseen(void) {
    const zend_long enabled = zend_ini_long("ffi.enable", strlen("ffi.enable"), 0);
    const char *preloaded = zend_ini_string("opcache.preload", strlen("opcache.preload"), 0);
    return shim_extension("ffi") != NULL && (enabled == 1 || (preloaded != NULL && *preloaded != '\0'));
}
