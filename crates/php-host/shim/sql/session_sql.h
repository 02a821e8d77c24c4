/* Finds the changes that a text of SQL may leave in its session, for two users: async mode's connection pools before a
 * connection is lent again, and snapshot mode before the next request gets a connection of the boot. */
#ifndef HOWDAH_SESSION_SQL_H
#define HOWDAH_SESSION_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum session_dialect {
    SESSION_MYSQL = 1,
    SESSION_PGSQL = 2,
    SESSION_SQLITE = 4,
} session_dialect;

/* Kinds of changes. Open transactions are not among them: callers detect those otherwise. */
typedef enum session_change {
    SESSION_SAME,
    SESSION_SETTING,   /* SET, USE, PRAGMA and the like */
    SESSION_VARIABLE,  /* a user variable of MySQL */
    SESSION_TEMPORARY, /* a temporary table, or a cursor that outlives its transaction */
    SESSION_LOCK,      /* of a table or by name */
    SESSION_PREPARED,  /* a statement prepared by a statement */
    SESSION_LISTENS,   /* LISTEN */
    SESSION_UNKNOWN,   /* an unknown statement, or a text that cannot be read with certainty */
} session_change;

/* A text that is being read, in pieces as they arrive. */
typedef struct session_sql {
    session_dialect dialect;
    bool backslashes; /* strings may contain escape characters */

    /* Changes found so far. */
    session_change change; /* the first */
    uint16_t changes;      /* all of them, as bits */
    bool reads;            /* only queries and starts or ends of transactions */
    bool calls;            /* there was an opening parenthesis */
    unsigned statements;

    /* Position of the reader. */
    uint8_t state, first, words, word_length, tag_length, matched, depth;
    bool quoted, skip, escapes, after_into, had_into;
    char quote, last;
    char word[44];
    char tag[32];
} session_sql;

void session_sql_begin(session_sql *sql, session_dialect dialect, bool backslashes);
void session_sql_feed(session_sql *sql, const char *text, size_t length);
session_change session_sql_end(session_sql *sql);

/* Reads a whole text. */
session_change session_sql_change(session_dialect dialect, const char *text, size_t length);
/* Returns a phrase for log lines: "a temporary table". */
const char *session_change_name(session_change change);

#endif
