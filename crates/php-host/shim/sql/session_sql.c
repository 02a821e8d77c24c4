/* Reads SQL as far as needed to find out what state a text may leave in its session. Only statements that are known to
 * leave nothing pass; an unknown one counts as a change (statement.c). Words in strings and comments are not
 * statements, and strings contain visitors' data, so the reader must see the same ends of strings as the server. Where
 * that is uncertain, the text counts as a change, too.
 *
 * Statements inside functions, procedures and triggers of the database are not seen. */
#include "sql/session_sql.h"

#include "sql/statement.h"

enum state {
    CODE,
    WORD,
    QUOTED_WORD,     /* an identifier in quotes */
    QUOTED_WORD_END, /* after a quote: the last one, or the first of two */
    STRING,
    STRING_END,
    SKIPPED, /* an identifier that cannot be a function's name */
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

static bool is_word_character(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c >= 0x80;
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

/* Handles a quote, a dollar or another character that begins something. False: it is an ordinary character. */
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
        sql_end_statement(s);
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
        sql_found(s, SESSION_UNKNOWN);
    }
    s->last = s->word_length > 0 ? 'w' : s->last;
    sql_end_word(s);
    take_code(s, c);
    s->escapes = s->escapes || (escaping && s->state == STRING);
}

/* Inside a C-style comment; in PostgreSQL they nest. */
static void take_block_comment(session_sql *s, unsigned char c) {
    if (s->dialect == SESSION_MYSQL &&
        ((s->matched == 0 && c == '!') || (s->matched == 1 && c == '!' && s->last == 'M'))) {
        /* The server executes the content of such a comment. */
        sql_found(s, SESSION_UNKNOWN);
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

/* After a dollar sign: $1, or the beginning of $tag$ ... $tag$. */
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
        sql_found(s, SESSION_UNKNOWN);
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

/* A character whose meaning depends on the next one. */
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
        /* SELECT ... INTO @a; a variable that is only read was not set by a request. */
        if (c != '@' && s->had_into) {
            sql_found(s, SESSION_VARIABLE);
        }
        break;
    case COLON:
        if (c == '=') {
            sql_found(s, SESSION_VARIABLE);
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
            sql_end_word(s);
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
        sql_end_word(s);
    } else if (s->state == QUOTED_WORD || s->state == STRING || s->state == SKIPPED || s->state == BLOCK_COMMENT ||
               s->state == DOLLAR_STRING || s->state == AT) {
        sql_found(s, SESSION_UNKNOWN);
    }
    sql_end_statement(s);
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
