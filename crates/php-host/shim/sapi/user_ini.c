/* Settings that depend on the request: those of .htaccess files, and, where a script runs for one request, the sections
 * [HOST=…] and [PATH=…] of php.ini, and .user.ini files from the document root down to the script's directory
 * (user_ini.filename, user_ini.cache_ttl). The result for a directory, including an absent file, is cached for
 * cache_ttl seconds, so most requests check no file. Where a request's memory is restored, only absent files are
 * remembered. */
#include "sapi/user_ini.h"

#include "shim.h"
#include "modes/mode.h"
#include "sapi/input.h"

#include <string.h>

/* Maximum number of cached directories; the cache is emptied when it is reached. */
#define MAX_DIRECTORIES 4096
/* Maximum number of directories to remember across restores; an application has few with scripts. */
#define ABSENT_DIRECTORIES 16

typedef struct directory_settings {
    time_t expires;
    HashTable values;
} directory_settings;

/* A directory in which no such file exists, nor in any of its parents up to the document root. */
typedef struct absent_files {
    time_t expires;
    char path[SHIM_ABSENT_FILES / ABSENT_DIRECTORIES - sizeof(time_t)];
} absent_files;

/* Memory that no restore touches, or NULL. Each directory maps to one slot. */
static absent_files *absent;

/* A setting's value before a rule changed it for the request. */
typedef struct changed_setting {
    struct changed_setting *next;
    zend_string *name;
    zend_string *value; /* the value that the script has set, else NULL */
} changed_setting;

static changed_setting *changed_settings;

static HashTable directories;
static bool directories_ready;

static void free_value(zval *value) {
    zval_internal_ptr_dtor(value);
}

static void free_directory(zval *entry) {
    directory_settings *settings = Z_PTR_P(entry);
    zend_hash_destroy(&settings->values);
    free(settings);
}

void shim_user_ini_remember_absent(void *memory) {
    absent = memory;
}

/* Returns the slot of a directory, or NULL. */
static absent_files *absent_slot(const char *path, size_t length) {
    if (absent == NULL || length >= sizeof absent->path) {
        return NULL;
    }
    return &absent[zend_inline_hash_func(path, length) % ABSENT_DIRECTORIES];
}

void shim_user_ini_shutdown(void) {
    if (directories_ready) {
        zend_hash_destroy(&directories);
        directories_ready = false;
    }
}

/* Reads the files from the document root to `path` (which ends in a slash), or only that of `path` when it lies
 * outside. `path` is cut temporarily at each slash. */
static void read_files(HashTable *values, char *path, size_t length, const char *root, size_t root_len) {
    bool inside = length > root_len && memcmp(path, root, root_len) == 0 && path[root_len] == '/';
    char *slash = inside ? path + root_len : path + length - 1;
    for (; slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        php_parse_user_ini_file(slash == path ? "/" : path, PG(user_ini_filename), values);
        *slash = '/';
    }
}

static directory_settings *settings_of(const char *path, size_t length) {
    if (!directories_ready) {
        zend_hash_init(&directories, 8, NULL, free_directory, 1);
        directories_ready = true;
    }
    directory_settings *settings = zend_hash_str_find_ptr(&directories, path, length);
    if (settings == NULL) {
        if (zend_hash_num_elements(&directories) >= MAX_DIRECTORIES) {
            zend_hash_clean(&directories);
        }
        settings = pemalloc(sizeof *settings, 1);
        settings->expires = 0;
        zend_hash_init(&settings->values, 0, NULL, free_value, 1);
        zend_hash_str_add_new_ptr(&directories, path, length, settings);
    }
    return settings;
}

static void activate_user_files(char *path, size_t length) {
    size_t root_len;
    const char *root = shim_known_var(SHIM_VAR_DOCUMENT_ROOT, &root_len);
    if (root == NULL) {
        return;
    }
    while (root_len > 0 && root[root_len - 1] == '/') {
        root_len--;
    }
    time_t now = (time_t)sapi_get_request_time();
    absent_files *none = absent_slot(path, length);
    if (none != NULL && now <= none->expires && strcmp(none->path, path) == 0) {
        return;
    }
    directory_settings *settings = settings_of(path, length);
    if (now > settings->expires) {
        zend_hash_clean(&settings->values);
        read_files(&settings->values, path, length, root, root_len);
        settings->expires = now + PG(user_ini_cache_ttl);
    }
    if (zend_hash_num_elements(&settings->values) > 0) {
        php_ini_activate_config(&settings->values, PHP_INI_PERDIR, PHP_INI_STAGE_HTACCESS);
    } else if (none != NULL) {
        none->expires = settings->expires;
        memcpy(none->path, path, length + 1);
    }
}

static void activate_host(void) {
    size_t length;
    const char *name = shim_known_var(SHIM_VAR_SERVER_NAME, &length);
    if (name != NULL) {
        char *lower = zend_str_tolower_dup(name, length);
        php_ini_activate_per_host_config(lower, length);
        efree(lower);
    }
}

/* PHP restores settings at the end of its request; where that request continues, shim_request_settings_end() does. */
static void remember_setting(zend_string *name) {
    const zend_ini_entry *entry = zend_hash_find_ptr(EG(ini_directives), name);
    bool known = entry == NULL;
    for (const changed_setting *changed = changed_settings; changed != NULL && !known; changed = changed->next) {
        known = zend_string_equals(changed->name, name);
    }
    if (known) {
        return;
    }
    changed_setting *changed = emalloc(sizeof *changed);
    *changed = (changed_setting){.next = changed_settings, .name = zend_string_copy(name)};
    if (entry->modified) {
        changed->value = entry->value != NULL ? zend_string_copy(entry->value) : ZSTR_EMPTY_ALLOC();
    }
    changed_settings = changed;
}

void shim_request_settings_end(void) {
    while (changed_settings != NULL) {
        changed_setting *changed = changed_settings;
        changed_settings = changed->next;
        /* At this stage, settings of sessions and output can be changed although headers were sent. */
        if (changed->value != NULL) {
            zend_alter_ini_entry_ex(changed->name, changed->value, PHP_INI_SYSTEM, PHP_INI_STAGE_DEACTIVATE, true);
            zend_string_release(changed->value);
        } else {
            zend_restore_ini_entry(changed->name, PHP_INI_STAGE_DEACTIVATE);
        }
        zend_string_release(changed->name);
        efree(changed);
    }
}

/* Settings that the server's rules have made for this request, one `name=value` per line, as FPM accepts them. */
static void activate_rules(shim_var number, int modifiable) {
    size_t length;
    const char *line = shim_known_var(number, &length);
    const char *end = line != NULL ? line + length : NULL;
    while (line != NULL && line < end) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((next != NULL ? next : end) - line);
        const char *equals = memchr(line, '=', size);
        if (equals != NULL && equals > line) {
            zend_string *name = zend_string_init(line, (size_t)(equals - line), false);
            if (shim.mode->keeps_settings) {
                remember_setting(name);
            }
            zend_alter_ini_entry_chars(name, equals + 1, size - (size_t)(equals - line) - 1, modifiable,
                                       PHP_INI_STAGE_HTACCESS);
            zend_string_release(name);
        }
        line = next != NULL ? next + 1 : NULL;
    }
}

static void activate_files(void) {
    if (php_ini_has_per_host_config()) {
        activate_host();
    }
    bool user_files = PG(user_ini_filename) != NULL && *PG(user_ini_filename) != '\0';
    if (!user_files && !php_ini_has_per_dir_config()) {
        return;
    }
    const char *script = shim_text(shim.request->script);
    const char *slash = strrchr(script, '/');
    if (slash == NULL) {
        return;
    }
    /* The script's directory with its slash, in memory that PHP may write to. */
    size_t length = (size_t)(slash - script) + 1;
    char buffer[MAXPATHLEN];
    if (length >= sizeof buffer) {
        return;
    }
    memcpy(buffer, script, length);
    buffer[length] = '\0';
    php_ini_activate_per_dir_config(buffer, length);
    if (user_files) {
        activate_user_files(buffer, length);
    }
}

void shim_request_settings(void) {
    if (shim.request != NULL) {
        activate_rules(SHIM_VAR_PHP_VALUE, PHP_INI_PERDIR);
        activate_rules(SHIM_VAR_PHP_ADMIN_VALUE, PHP_INI_SYSTEM);
    }
}

int shim_sapi_activate(void) {
    if (shim.request != NULL) {
        if (shim.mode->directory_settings) {
            activate_files();
        }
        /* Again, because they override files, and some cannot change before PHP has cleared the last headers. */
        shim_request_settings();
    }
    return SUCCESS;
}
