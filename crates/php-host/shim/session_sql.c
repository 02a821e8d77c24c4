/* Reads SQL as far as it takes to say what a text may leave behind in its session. Only statements that are known to
 * leave nothing pass: an unknown one counts as a change. Words in strings and comments are not taken for statements,
 * since what visitors send is in strings; so the borders of strings must be those that the server sees. Where they are
 * in doubt the text counts as a change too.
 *
 * What functions, procedures and triggers of the database do inside is not seen. */
#include "session_sql.h"

#include <string.h>

#define M SESSION_MYSQL
#define P SESSION_PGSQL
#define S SESSION_SQLITE

enum state {
    CODE,
    WORD,
    QUOTED_WORD,     /* an identifier in quotes */
    QUOTED_WORD_END, /* the quote: the last one, or one of two */
    STRING,
    STRING_END,
    SKIPPED, /* an identifier that no function has */
    DASH,
    TWO_DASHES,
    SLASH,
    LINE_COMMENT,
    BLOCK_COMMENT,
    DOLLAR,
    DOLLAR_STRING,
    AT,
    COLON,
};

/* What the first word of a statement says about it. */
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
    /* PostgreSQL has SET LOCAL and the like, whose end is the transaction's. */
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

/* Anywhere in a statement: functions and names. */
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
    /* These run a text that is not looked at. */
    {"QUERY_TO_XML", P, SESSION_UNKNOWN},
    {"QUERY_TO_XMLSCHEMA", P, SESSION_UNKNOWN},
    {"QUERY_TO_XML_AND_XMLSCHEMA", P, SESSION_UNKNOWN},
    {"LOAD_EXTENSION", S, SESSION_UNKNOWN},
};

static void found(session_sql *s, session_change change) {
    s->changes |= (uint16_t)(1u << change);
    if (s->change == SESSION_SAME) {
        s->change = change;
    }
}

static bool is_word_character(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c >= 0x80;
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
        found(s, known->change);
        return;
    }
    s->first = WRITES;
    s->reads = false;
    found(s, SESSION_UNKNOWN);
}

/* A word that means something in this kind of statement only. */
static void take_word_in_place(session_sql *s) {
    switch (s->first) {
    case CREATES:
        if (s->words <= 4 && is_temporary(s->word)) {
            found(s, SESSION_TEMPORARY);
        }
        break;
    case DROPS:
        if (s->words == 1 && strcmp(s->word, "TEMPORARY") == 0) {
            found(s, SESSION_TEMPORARY);
        }
        break;
    case BEGINS:
        /* MariaDB: BEGIN NOT ATOMIC begins a block of statements. */
        if (s->words == 1 && strcmp(s->word, "NOT") == 0) {
            found(s, SESSION_UNKNOWN);
        }
        break;
    case DECLARES:
        if (strcmp(s->word, "HOLD") == 0) {
            found(s, SESSION_TEMPORARY);
        }
        break;
    case SETS:
        if (s->words == 1) {
            bool passes = strcmp(s->word, "LOCAL") == 0 || strcmp(s->word, "TRANSACTION") == 0 ||
                          strcmp(s->word, "CONSTRAINTS") == 0;
            s->first = WRITES;
            s->reads = false;
            found(s, passes ? SESSION_SAME : SESSION_SETTING);
        }
        break;
    default:
        break;
    }
    s->had_into = s->had_into || strcmp(s->word, "INTO") == 0;
    if (s->dialect == SESSION_PGSQL) {
        if (s->after_into && is_temporary(s->word)) {
            found(s, SESSION_TEMPORARY);
        }
        s->after_into = strcmp(s->word, "INTO") == 0 ||
                        (s->after_into && (strcmp(s->word, "LOCAL") == 0 || strcmp(s->word, "GLOBAL") == 0));
    }
}

static void end_word(session_sql *s) {
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
            found(s, known->change);
        }
    }
    if (s->dialect == SESSION_PGSQL && strncmp(s->word, "PG_", 3) == 0 && strstr(s->word, "ADVISORY") != NULL &&
        strstr(s->word, "XACT") == NULL) {
        found(s, SESSION_LOCK);
    }
    if (s->dialect == SESSION_PGSQL && strncmp(s->word, "PG_TEMP_", 8) == 0) {
        found(s, SESSION_TEMPORARY);
    }
    s->word_length = 0;
    s->quoted = false;
}

static void end_statement(session_sql *s) {
    if (s->first == SETS) {
        found(s, SESSION_SETTING);
    }
    s->first = NOTHING_YET;
    s->words = 0;
    s->after_into = s->had_into = false;
}

static void add_to_word(session_sql *s, unsigned char c) {
    if (s->word_length < sizeof s->word) {
        s->word[s->word_length++] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
}

static void begin_string(session_sql *s, char quote, bool escapes) {
    s->state = STRING;
    s->quote = quote;
    s->escapes = escapes;
    s->skip = false;
    s->after_into = false;
}

/* A quote, a dollar or another sign that begins something. False: it is a sign like any other. */
static bool begin_quoted(session_sql *s, unsigned char c) {
    switch (c) {
    case '\'':
        begin_string(s, '\'', s->backslashes);
        return true;
    case '"':
        if (s->dialect == SESSION_MYSQL) {
            begin_string(s, '"', s->backslashes);
        } else {
            s->state = QUOTED_WORD;
        }
        return true;
    case '`':
        if (s->dialect == SESSION_PGSQL) {
            return false;
        }
        s->state = SKIPPED;
        s->quote = '`';
        s->words += s->words != 0;
        s->after_into = false;
        return true;
    case '[':
        if (s->dialect != SESSION_SQLITE) {
            return false;
        }
        s->state = SKIPPED;
        s->quote = ']';
        return true;
    case '$':
        if (s->dialect != SESSION_PGSQL) {
            return false;
        }
        s->state = DOLLAR;
        s->tag_length = 0;
        return true;
    default:
        return false;
    }
}

static bool ends_line(unsigned char c) {
    return c == '\n' || c == '\r';
}

static void take_code(session_sql *s, unsigned char c) {
    s->state = CODE;
    if (begin_quoted(s, c)) {
        return;
    }
    if (is_word_character(c)) {
        s->state = WORD;
        add_to_word(s, c);
        return;
    }
    switch (c) {
    case '-':
        s->state = DASH;
        break;
    case '/':
        s->state = SLASH;
        break;
    case '#':
        if (s->dialect == SESSION_MYSQL) {
            s->state = LINE_COMMENT;
        }
        break;
    case '@':
        /* Not in user@host, nor the second of two. */
        if (s->dialect == SESSION_MYSQL && !is_word_character((unsigned char)s->last) && s->last != '.' &&
            s->last != '\'' && s->last != '"' && s->last != '`' && s->last != '@') {
            s->state = AT;
        }
        break;
    case ':':
        s->state = s->dialect == SESSION_MYSQL ? COLON : CODE;
        break;
    case ';':
        end_statement(s);
        break;
    case '(':
        s->calls = true;
        break;
    default:
        break;
    }
    s->last = (char)c;
}

static void leave_word(session_sql *s, unsigned char c) {
    bool escaping = s->dialect == SESSION_PGSQL && c == '\'' && s->word_length == 1 && s->word[0] == 'E';
    /* An identifier with escaped characters could be any function's name. */
    if (s->dialect == SESSION_PGSQL && c == '&' && s->word_length == 1 && s->word[0] == 'U') {
        found(s, SESSION_UNKNOWN);
    }
    s->last = s->word_length > 0 ? 'w' : s->last;
    end_word(s);
    take_code(s, c);
    s->escapes = s->escapes || (escaping && s->state == STRING);
}

/* Inside of a comment in C's manner; PostgreSQL has them in each other. */
static void take_block_comment(session_sql *s, unsigned char c) {
    if (s->dialect == SESSION_MYSQL &&
        ((s->matched == 0 && c == '!') || (s->matched == 1 && c == '!' && s->last == 'M'))) {
        /* The server runs what stands there. */
        found(s, SESSION_UNKNOWN);
    }
    s->matched += s->matched < 2;
    if (s->last == '*' && c == '/') {
        s->last = ' ';
        if (--s->depth == 0) {
            s->state = CODE;
        }
        return;
    }
    if (s->dialect == SESSION_PGSQL && s->last == '/' && c == '*') {
        s->depth += s->depth < UINT8_MAX;
        s->last = ' ';
        return;
    }
    s->last = (char)c;
}

/* Behind a dollar sign: $1, or the beginning of $tag$ ... $tag$. */
static void take_dollar(session_sql *s, unsigned char c) {
    if (c == '$') {
        s->state = DOLLAR_STRING;
        s->matched = 0;
    } else if (!is_word_character(c) || (s->tag_length == 0 && c >= '0' && c <= '9')) {
        s->last = '$';
        take_code(s, c);
    } else if (s->tag_length < sizeof s->tag) {
        s->tag[s->tag_length++] = (char)c;
    } else {
        found(s, SESSION_UNKNOWN);
    }
}

static void take_dollar_string(session_sql *s, unsigned char c) {
    if (c == '$') {
        if (s->matched == s->tag_length + 1) {
            s->state = CODE;
            s->last = '$';
        } else {
            s->matched = 1;
        }
    } else if (s->matched > 0 && s->matched <= s->tag_length && s->tag[s->matched - 1] == (char)c) {
        s->matched++;
    } else {
        s->matched = 0;
    }
}

static void take_string(session_sql *s, unsigned char c) {
    if (s->skip) {
        s->skip = false;
    } else if (c == '\\' && s->escapes) {
        s->skip = true;
    } else if (c == (unsigned char)s->quote) {
        s->state = STRING_END;
    }
}

static void take_quoted_word(session_sql *s, unsigned char c) {
    if (c == '"') {
        s->state = QUOTED_WORD_END;
    } else {
        add_to_word(s, c);
    }
}

/* A sign whose meaning depends on the one behind it. */
static void take_pair(session_sql *s, unsigned char c) {
    switch (s->state) {
    case DASH:
        if (c == '-') {
            s->state = s->dialect == SESSION_MYSQL ? TWO_DASHES : LINE_COMMENT;
            return;
        }
        break;
    case TWO_DASHES:
        if (c <= ' ') {
            s->state = ends_line(c) ? CODE : LINE_COMMENT;
            return;
        }
        break;
    case SLASH:
        if (c == '*') {
            s->state = BLOCK_COMMENT;
            s->depth = 1;
            s->matched = 0;
            s->last = ' ';
            return;
        }
        break;
    case AT:
        /* SELECT ... INTO @a; one that is only read was not set by a request. */
        if (c != '@' && s->had_into) {
            found(s, SESSION_VARIABLE);
        }
        break;
    case COLON:
        if (c == '=') {
            found(s, SESSION_VARIABLE);
        }
        break;
    default:
        break;
    }
    take_code(s, c);
}

static void take(session_sql *s, unsigned char c) {
    switch (s->state) {
    case CODE:
        take_code(s, c);
        break;
    case WORD:
        if (is_word_character(c)) {
            add_to_word(s, c);
        } else {
            leave_word(s, c);
        }
        break;
    case QUOTED_WORD:
        take_quoted_word(s, c);
        break;
    case QUOTED_WORD_END:
        if (c == '"') {
            s->state = QUOTED_WORD;
            add_to_word(s, c);
        } else {
            s->quoted = true;
            s->last = '"';
            end_word(s);
            take_code(s, c);
        }
        break;
    case STRING:
        take_string(s, c);
        break;
    case STRING_END:
        if (c == (unsigned char)s->quote) {
            s->state = STRING;
        } else {
            s->last = s->quote;
            take_code(s, c);
        }
        break;
    case SKIPPED:
        if (c == (unsigned char)s->quote) {
            s->state = CODE;
            s->last = '`';
        }
        break;
    case LINE_COMMENT:
        if (ends_line(c)) {
            s->state = CODE;
            s->last = ' ';
        }
        break;
    case BLOCK_COMMENT:
        take_block_comment(s, c);
        break;
    case DOLLAR:
        take_dollar(s, c);
        break;
    case DOLLAR_STRING:
        take_dollar_string(s, c);
        break;
    default:
        take_pair(s, c);
        break;
    }
}

void session_sql_begin(session_sql *s, session_dialect dialect, bool backslashes) {
    *s = (session_sql){.dialect = dialect, .backslashes = backslashes, .reads = true, .last = ' '};
}

void session_sql_feed(session_sql *s, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (s->state == STRING && !s->skip) {
            /* Most of a long text is data. */
            while (i < length && text[i] != s->quote && text[i] != '\\') {
                i++;
            }
            if (i == length) {
                return;
            }
        }
        take(s, (unsigned char)text[i]);
    }
}

session_change session_sql_end(session_sql *s) {
    if (s->state == WORD || s->state == QUOTED_WORD_END) {
        s->quoted = s->state == QUOTED_WORD_END;
        end_word(s);
    } else if (s->state == QUOTED_WORD || s->state == STRING || s->state == SKIPPED || s->state == BLOCK_COMMENT ||
               s->state == DOLLAR_STRING || s->state == AT) {
        found(s, SESSION_UNKNOWN);
    }
    end_statement(s);
    s->state = CODE;
    return s->change;
}

session_change session_sql_change(session_dialect dialect, const char *text, size_t length) {
    session_sql sql;
    session_sql_begin(&sql, dialect, dialect == SESSION_MYSQL);
    session_sql_feed(&sql, text, length);
    return session_sql_end(&sql);
}

const char *session_change_name(session_change change) {
    static const char *const names[] = {
        [SESSION_SAME] = "nothing",
        [SESSION_SETTING] = "a setting of the session",
        [SESSION_VARIABLE] = "a user variable",
        [SESSION_TEMPORARY] = "a temporary table or a cursor",
        [SESSION_LOCK] = "a lock",
        [SESSION_PREPARED] = "a prepared statement",
        [SESSION_LISTENS] = "a channel it listens on",
        [SESSION_UNKNOWN] = "a statement that may do anything",
    };
    return names[change];
}
