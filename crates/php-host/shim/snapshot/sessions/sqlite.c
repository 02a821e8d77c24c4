/* SQLite databases that the application opened at boot. A request's changes of such a connection are in memory and
 * disappear with the restore, but SQLite's state in the kernel does not: locks, and the journal of a begun transaction.
 * So after a request SQLite itself brings each connection to rest, and locks are compared (snapshot/engine/locks.c).
 *
 * A snapshot is refused for a connection in a transaction, or one that never releases its locks: it would restore pages
 * of a database that has changed in the meantime. */
#include "snapshot/sessions/sqlite.h"

#include "shim.h"
#include "process/import_hooks.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/pool_notes.h"
#include "snapshot/sessions/sqlite_files.h"

#include <dlfcn.h>
#include <string.h>

#define MAX_DATABASES 64

/* SQLite's, whose headers are not needed otherwise. */
#define SQLITE_OK 0
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef int row_function(void *argument, int columns, char **values, char **names);

static struct {
    int (*open_v2)(const char *name, sqlite3 **db, int flags, const char *vfs);
    int (*open)(const char *name, sqlite3 **db);
    int (*close)(sqlite3 *db);
    int (*close_v2)(sqlite3 *db);
    int (*step)(sqlite3_stmt *statement);
    int (*exec)(sqlite3 *db, const char *sql, row_function *row, void *argument, char **error);
    int (*prepare_v2)(sqlite3 *db, const char *sql, int length, sqlite3_stmt **statement, const char **tail);
    int (*get_autocommit)(sqlite3 *db);
    sqlite3_stmt *(*next_stmt)(sqlite3 *db, sqlite3_stmt *statement);
    int (*stmt_busy)(sqlite3_stmt *statement);
    int (*reset)(sqlite3_stmt *statement);
    int (*set_authorizer)(sqlite3 *db,
                          int (*function)(void *, int, const char *, const char *, const char *, const char *),
                          void *argument);
} api;

static sqlite3 *databases[MAX_DATABASES];
static size_t n_databases;
/* True if the request has used a connection: all connections share SQLite's data about a file. */
static bool used;
/* Depth of calls into SQLite: not 0 after a request that was interrupted inside one. */
static int inside;

static void forget(const sqlite3 *db) {
    for (size_t i = 0; i < n_databases; i++) {
        if (databases[i] == db) {
            databases[i] = databases[--n_databases];
            used = true;
            return;
        }
    }
}

static int remember(int result, sqlite3 **db) {
    if (db == NULL || *db == NULL || snapshot_taken()) {
        return result;
    }
    if (n_databases == MAX_DATABASES) {
        snapshot_spoil("more databases of SQLite were opened at boot than can be watched");
    } else {
        databases[n_databases++] = *db;
    }
    return result;
}

static int watched_open_v2(const char *name, sqlite3 **db, int flags, const char *vfs) {
    used = true;
    return remember(api.open_v2(name, db, flags, vfs), db);
}

static int watched_open(const char *name, sqlite3 **db) {
    used = true;
    return remember(api.open(name, db), db);
}

static int watched_close(sqlite3 *db) {
    int result = api.close(db);
    if (result == SQLITE_OK) {
        forget(db);
    }
    return result;
}

static int watched_close_v2(sqlite3 *db) {
    forget(db);
    return api.close_v2(db);
}

static int watched_step(sqlite3_stmt *statement) {
    used = true;
    inside++;
    int result = api.step(statement);
    inside--;
    return result;
}

static int watched_exec(sqlite3 *db, const char *sql, row_function *row, void *argument, char **error) {
    used = true;
    inside++;
    int result = api.exec(db, sql, row, argument, error);
    inside--;
    return result;
}

static int watched_prepare_v2(sqlite3 *db, const char *sql, int length, sqlite3_stmt **statement, const char **tail) {
    used = true;
    inside++;
    int result = api.prepare_v2(db, sql, length, statement, tail);
    inside--;
    return result;
}

static const import_hook hooks[] = {
    {"sqlite3_open_v2", watched_open_v2},       {"sqlite3_open", watched_open}, {"sqlite3_close", watched_close},
    {"sqlite3_close_v2", watched_close_v2},     {"sqlite3_step", watched_step}, {"sqlite3_exec", watched_exec},
    {"sqlite3_prepare_v2", watched_prepare_v2},
};

void shim_snapshot_sqlite_watch(void) {
    void *library = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) {
        return;
    }
    const struct {
        void *place;
        const char *name;
    } functions[] = {
        {&api.open_v2, "sqlite3_open_v2"},
        {&api.open, "sqlite3_open"},
        {&api.close, "sqlite3_close"},
        {&api.close_v2, "sqlite3_close_v2"},
        {&api.step, "sqlite3_step"},
        {&api.exec, "sqlite3_exec"},
        {&api.prepare_v2, "sqlite3_prepare_v2"},
        {&api.get_autocommit, "sqlite3_get_autocommit"},
        {&api.next_stmt, "sqlite3_next_stmt"},
        {&api.stmt_busy, "sqlite3_stmt_busy"},
        {&api.reset, "sqlite3_reset"},
        {&api.set_authorizer, "sqlite3_set_authorizer"},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (function == NULL) {
            return;
        }
        memcpy(functions[i].place, &function, sizeof function);
    }
    import_hooks_install(hooks, sizeof hooks / sizeof *hooks);
}

static int note_exclusive(void *exclusive, int columns, char **values, char **names) {
    for (int i = 0; i < columns; i++) {
        *(bool *)exclusive = *(bool *)exclusive || (values[i] != NULL && strcmp(values[i], "exclusive") == 0);
    }
    return 0;
}

/* A row of `PRAGMA database_list`: number, name, file. Databases in memory have none. */
static int note_file(void *watched, int columns, char **values, char **names) {
    if (columns > 2 && values[2] != NULL && *values[2] != '\0' && !shim_sqlite_files_note(values[2])) {
        *(bool *)watched = false;
    }
    return 0;
}

static void end_statements(sqlite3 *db) {
    sqlite3_stmt *statement = NULL;
    while ((statement = api.next_stmt(db, statement)) != NULL) {
        if (api.stmt_busy(statement)) {
            api.reset(statement);
        }
    }
}

const char *shim_snapshot_sqlite_boot(void) {
    for (size_t i = 0; i < n_databases; i++) {
        bool exclusive = false;
        if (!api.get_autocommit(databases[i])) {
            return "a transaction is open on a database of SQLite; end it first";
        }
        end_statements(databases[i]);
        api.exec(databases[i], "PRAGMA locking_mode", note_exclusive, &exclusive, NULL);
        if (exclusive) {
            return "a database of SQLite is open that no other process can use (PRAGMA locking_mode=EXCLUSIVE); open "
                   "it in each request instead";
        }
        bool watched = true;
        api.exec(databases[i], "PRAGMA database_list", note_file, &watched, NULL);
        if (!watched) {
            return "more files of SQLite are open than can be watched";
        }
    }
    used = false;
    return NULL;
}

const char *shim_snapshot_sqlite_settle(void) {
    if (!used || (n_databases == 0 && !snapshot_has_locked_files())) {
        return NULL;
    }
    if (inside != 0) {
        return "a script was ended inside of SQLite";
    }
    snapshot_locks_touched();
    for (size_t i = 0; i < n_databases; i++) {
        end_statements(databases[i]);
        if (api.get_autocommit(databases[i])) {
            continue;
        }
        /* The authorizer may be a PHP function, and PHP's request is over. */
        api.set_authorizer(databases[i], NULL, NULL);
        if (api.exec(databases[i], "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK) {
            return "a transaction on a database of SQLite cannot be rolled back";
        }
        shim_snapshot_count_reset();
        shim_snapshot_advise(TAP_ADVICE_TRANSACTION, NULL);
    }
    return NULL;
}
