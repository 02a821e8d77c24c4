/* Meaning of a statement's words: the first determines the kind of statement, some have a meaning only in their kind,
 * and some anywhere. An unknown statement counts as a change. */
#include "sql/statement.h"

#include "sql/session_sql.h"

#include <string.h>

#define M SESSION_MYSQL
#define P SESSION_PGSQL
#define S SESSION_SQLITE

/* Meaning of a statement's first word. */
enum first {
    NOTHING_YET,
    READS,
    WRITES,
    CREATES,
    DROPS,
    BEGINS,
    DECLARES,
    SETS,
};

typedef struct first_word {
    const char *word;
    uint8_t dialects;
    uint8_t first;
    uint8_t change;
} first_word;

static const first_word first_words[] = {
    {"SELECT", M | P | S, READS, SESSION_SAME},
    {"INSERT", M | P | S, WRITES, SESSION_SAME},
    {"UPDATE", M | P | S, WRITES, SESSION_SAME},
    {"DELETE", M | P | S, WRITES, SESSION_SAME},
    {"BEGIN", M | P | S, BEGINS, SESSION_SAME},
    {"START", M | P, READS, SESSION_SAME},
    {"COMMIT", M | P | S, READS, SESSION_SAME},
    {"END", P | S, READS, SESSION_SAME},
    {"ROLLBACK", M | P | S, READS, SESSION_SAME},
    {"ABORT", P, READS, SESSION_SAME},
    {"SAVEPOINT", M | P | S, READS, SESSION_SAME},
    {"RELEASE", M | P | S, READS, SESSION_SAME},
    {"WITH", M | P | S, WRITES, SESSION_SAME},
    {"REPLACE", M | S, WRITES, SESSION_SAME},
    {"VALUES", M | P | S, READS, SESSION_SAME},
    {"TABLE", M | P, READS, SESSION_SAME},
    {"SHOW", M | P, READS, SESSION_SAME},
    {"EXPLAIN", M | P | S, WRITES, SESSION_SAME},
    {"DESCRIBE", M, READS, SESSION_SAME},
    {"DESC", M, READS, SESSION_SAME},
    {"HELP", M, READS, SESSION_SAME},
    {"DO", M, WRITES, SESSION_SAME},
    {"MERGE", P, WRITES, SESSION_SAME},
    {"COPY", P, WRITES, SESSION_SAME},
    {"NOTIFY", P, WRITES, SESSION_SAME},
    {"LOCK", P, WRITES, SESSION_SAME}, /* until the end of the transaction */
    {"FETCH", P, WRITES, SESSION_SAME},
    {"MOVE", P, WRITES, SESSION_SAME},
    {"CLOSE", P, WRITES, SESSION_SAME},
    {"DECLARE", P, DECLARES, SESSION_SAME},
    {"CREATE", M | P | S, CREATES, SESSION_SAME},
    {"DROP", M | P | S, DROPS, SESSION_SAME},
    {"ALTER", M | P | S, WRITES, SESSION_SAME},
    {"RENAME", M, WRITES, SESSION_SAME},
    {"TRUNCATE", M | P, WRITES, SESSION_SAME},
    {"LOAD", M, WRITES, SESSION_SAME}, /* LOAD DATA */
    {"COMMENT", P, WRITES, SESSION_SAME},
    {"GRANT", M | P, WRITES, SESSION_SAME},
    {"REVOKE", M | P, WRITES, SESSION_SAME},
    {"KILL", M, WRITES, SESSION_SAME},
    {"ANALYZE", M | P | S, WRITES, SESSION_SAME},
    {"OPTIMIZE", M, WRITES, SESSION_SAME},
    {"CHECK", M, WRITES, SESSION_SAME},
    {"CHECKSUM", M, WRITES, SESSION_SAME},
    {"REPAIR", M, WRITES, SESSION_SAME},
    {"VACUUM", P | S, WRITES, SESSION_SAME},
    {"REINDEX", P | S, WRITES, SESSION_SAME},
    {"REFRESH", P, WRITES, SESSION_SAME},
    {"CLUSTER", P, WRITES, SESSION_SAME},
    {"CHECKPOINT", P, WRITES, SESSION_SAME},
    /* PostgreSQL has SET LOCAL and the like, which end with the transaction. */
    {"SET", P, SETS, SESSION_SAME},
    {"SET", M, WRITES, SESSION_SETTING},
    {"USE", M, WRITES, SESSION_SETTING},
    {"RESET", P, WRITES, SESSION_SETTING},
    {"DISCARD", P, WRITES, SESSION_SETTING},
    {"PRAGMA", S, WRITES, SESSION_SETTING},
    {"ATTACH", S, WRITES, SESSION_SETTING},
    {"DETACH", S, WRITES, SESSION_SETTING},
    {"LOCK", M, WRITES, SESSION_LOCK},
    {"UNLOCK", M, WRITES, SESSION_LOCK},
    {"HANDLER", M, WRITES, SESSION_LOCK},
    {"PREPARE", M | P, WRITES, SESSION_PREPARED},
    {"EXECUTE", M | P, WRITES, SESSION_PREPARED},
    {"DEALLOCATE", M | P, WRITES, SESSION_PREPARED},
    {"LISTEN", P, WRITES, SESSION_LISTENS},
    {"UNLISTEN", P, WRITES, SESSION_LISTENS},
};

/* Words that count anywhere in a statement: functions and names. */
typedef struct telling_word {
    const char *word;
    uint8_t dialects;
    uint8_t change;
} telling_word;

static const telling_word telling_words[] = {
    {"GET_LOCK", M, SESSION_LOCK},
    {"RELEASE_LOCK", M, SESSION_LOCK},
    {"RELEASE_ALL_LOCKS", M, SESSION_LOCK},
    {"SET_CONFIG", P, SESSION_SETTING},
    {"SETSEED", P, SESSION_SETTING},
    {"SET_LIMIT", P, SESSION_SETTING},
    {"PG_TEMP", P, SESSION_TEMPORARY},
    {"DBLINK_CONNECT", P, SESSION_SETTING},
    {"DBLINK_CONNECT_U", P, SESSION_SETTING},
    {"DBLINK_DISCONNECT", P, SESSION_SETTING},
    {"DBLINK_OPEN", P, SESSION_SETTING},
    {"PG_REPLICATION_ORIGIN_SESSION_SETUP", P, SESSION_SETTING},
    {"PG_REPLICATION_ORIGIN_SESSION_RESET", P, SESSION_SETTING},
    /* These functions run a text that is not examined. */
    {"QUERY_TO_XML", P, SESSION_UNKNOWN},
    {"QUERY_TO_XMLSCHEMA", P, SESSION_UNKNOWN},
    {"QUERY_TO_XML_AND_XMLSCHEMA", P, SESSION_UNKNOWN},
    {"LOAD_EXTENSION", S, SESSION_UNKNOWN},
};

void sql_found(session_sql *s, session_change change) {
    s->changes |= (uint16_t)(1u << change);
    if (s->change == SESSION_SAME) {
        s->change = change;
    }
}

static bool is_temporary(const char *word) {
    return strcmp(word, "TEMP") == 0 || strcmp(word, "TEMPORARY") == 0;
}

static void take_first_word(session_sql *s) {
    s->statements++;
    for (size_t i = 0; i < sizeof first_words / sizeof *first_words; i++) {
        const first_word *known = &first_words[i];
        if ((known->dialects & s->dialect) == 0 || strcmp(known->word, s->word) != 0) {
            continue;
        }
        s->first = known->first;
        s->reads = s->reads && (known->first == READS || known->first == BEGINS);
        sql_found(s, known->change);
        return;
    }
    s->first = WRITES;
    s->reads = false;
    sql_found(s, SESSION_UNKNOWN);
}

/* Handles a word that has a meaning only in this kind of statement. */
static void take_word_in_place(session_sql *s) {
    switch (s->first) {
    case CREATES:
        if (s->words <= 4 && is_temporary(s->word)) {
            sql_found(s, SESSION_TEMPORARY);
        }
        break;
    case DROPS:
        if (s->words == 1 && strcmp(s->word, "TEMPORARY") == 0) {
            sql_found(s, SESSION_TEMPORARY);
        }
        break;
    case BEGINS:
        /* MariaDB: BEGIN NOT ATOMIC begins a block of statements. */
        if (s->words == 1 && strcmp(s->word, "NOT") == 0) {
            sql_found(s, SESSION_UNKNOWN);
        }
        break;
    case DECLARES:
        if (strcmp(s->word, "HOLD") == 0) {
            sql_found(s, SESSION_TEMPORARY);
        }
        break;
    case SETS:
        if (s->words == 1) {
            bool passes = strcmp(s->word, "LOCAL") == 0 || strcmp(s->word, "TRANSACTION") == 0 ||
                          strcmp(s->word, "CONSTRAINTS") == 0;
            s->first = WRITES;
            s->reads = false;
            sql_found(s, passes ? SESSION_SAME : SESSION_SETTING);
        }
        break;
    default:
        break;
    }
    s->had_into = s->had_into || strcmp(s->word, "INTO") == 0;
    if (s->dialect == SESSION_PGSQL) {
        if (s->after_into && is_temporary(s->word)) {
            sql_found(s, SESSION_TEMPORARY);
        }
        s->after_into = strcmp(s->word, "INTO") == 0 ||
                        (s->after_into && (strcmp(s->word, "LOCAL") == 0 || strcmp(s->word, "GLOBAL") == 0));
    }
}

void sql_end_word(session_sql *s) {
    s->word[s->word_length < sizeof s->word ? s->word_length : 0] = '\0';
    if (s->words == 0) {
        if (s->quoted) {
            s->word[0] = '\0';
        }
        take_first_word(s);
    } else if (!s->quoted) {
        take_word_in_place(s);
    } else {
        s->after_into = false;
    }
    s->words += s->words < UINT8_MAX;
    for (size_t i = 0; i < sizeof telling_words / sizeof *telling_words; i++) {
        const telling_word *known = &telling_words[i];
        if (known->word[0] == s->word[0] && (known->dialects & s->dialect) != 0 && strcmp(known->word, s->word) == 0) {
            sql_found(s, known->change);
        }
    }
    if (s->dialect == SESSION_PGSQL && strncmp(s->word, "PG_", 3) == 0 && strstr(s->word, "ADVISORY") != NULL &&
        strstr(s->word, "XACT") == NULL) {
        sql_found(s, SESSION_LOCK);
    }
    if (s->dialect == SESSION_PGSQL && strncmp(s->word, "PG_TEMP_", 8) == 0) {
        sql_found(s, SESSION_TEMPORARY);
    }
    s->word_length = 0;
    s->quoted = false;
}

void sql_end_statement(session_sql *s) {
    if (s->first == SETS) {
        sql_found(s, SESSION_SETTING);
    }
    s->first = NOTHING_YET;
    s->words = 0;
    s->after_into = s->had_into = false;
}
