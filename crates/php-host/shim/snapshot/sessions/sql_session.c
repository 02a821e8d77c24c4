/* Changes by SQL of the session of a boot-time connection. Statements of the boot that set something are kept, so that
 * a session can be reset and given its settings again. */
#include "snapshot/engine/snapshot.h"
#include "snapshot/sessions/tap.h"
#include "sql/session_sql.h"

#include <string.h>
#include <strings.h>

void tap_session_begin(tap *t, session_dialect dialect, bool backslashes) {
    session_sql_begin(&t->session.reader, dialect, backslashes);
    t->session.length = 0;
}

void tap_session_feed(tap *t, const char *text, size_t length) {
    tap_session *session = &t->session;
    if (session->length < TAP_TEXT) {
        size_t fits = TAP_TEXT - session->length;
        memcpy(session->text + session->length, text, length < fits ? length : fits);
    }
    session->length += length;
    session_sql_feed(&session->reader, text, length);
}

/* True for a single statement that sets something. Settings are compared when all statements have run again; variables
 * are not, so their values must be constants in the text. */
static bool is_repeatable(const tap_session *session) {
    const unsigned all = session->reader.changes, variable = 1u << SESSION_VARIABLE;
    const unsigned known = 1u << SESSION_SAME | 1u << SESSION_SETTING | variable;
    return (all & ~known) == 0 && ((all & variable) == 0 || !session->reader.calls) &&
           session->reader.statements == 1 && session->length < TAP_TEXT &&
           memchr(session->text, '\0', session->length) == NULL &&
           (strncasecmp(session->text, "SET ", 4) == 0 || strncasecmp(session->text, "USE ", 4) == 0) &&
           session->boot_length + session->length + 1 <= TAP_BOOT_TEXT;
}

void tap_session_end(tap *t) {
    tap_session *session = &t->session;
    session_change change = session_sql_end(&session->reader);
    if (t->own) {
        return;
    }
    if (snapshot_taken()) {
        /* Any statement that writes may change temporary tables of the boot. */
        if (change == SESSION_SAME && session->holds_data && !session->reader.reads) {
            change = SESSION_TEMPORARY;
        }
        tap_session_changed(t, change);
    } else if (change == SESSION_SAME) {
        return;
    } else if (is_repeatable(session)) {
        memcpy(session->boot + session->boot_length, session->text, session->length);
        session->boot_length += session->length;
        session->boot[session->boot_length++] = '\0';
    } else {
        session->unrepeatable = change;
        session->holds_data = session->holds_data || (session->reader.changes & 1u << SESSION_TEMPORARY) != 0;
    }
}

void tap_session_changed(tap *t, session_change change) {
    if (t->own) {
        return;
    }
    if (!snapshot_taken()) {
        t->session.unrepeatable = change != SESSION_SAME ? change : t->session.unrepeatable;
    } else if (t->session.change == SESSION_SAME) {
        t->session.change = change;
    }
}

bool tap_session_repeat(tap *t, bool (*say)(tap *t, const char *sql)) {
    const tap_session *session = &t->session;
    for (size_t at = 0; at < session->boot_length; at += strlen(session->boot + at) + 1) {
        if (!say(t, session->boot + at)) {
            return false;
        }
    }
    return true;
}

/* FNV-1a: finds accidental differences; no attacker is expected. */
void tap_session_sum(tap *t, const void *data, size_t length) {
    const unsigned char *bytes = data;
    uint64_t sum = t->session.sum != 0 ? t->session.sum : 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) {
        sum = (sum ^ bytes[i]) * 0x100000001b3u;
    }
    t->session.sum = sum;
}

void tap_session_keep(tap *t, bool (*ask)(tap *t)) {
    tap_session *session = &t->session;
    session->sum = 0;
    if (session->unrepeatable == SESSION_SAME && ask(t)) {
        session->settings = session->sum;
    }
}

bool tap_session_is_back(tap *t, bool (*ask)(tap *t)) {
    tap_session *session = &t->session;
    bool proven = session->proven != NULL && *session->proven;
    if (!proven) {
        session->sum = 0;
        proven = ask(t) && session->sum == session->settings;
        if (proven && session->proven != NULL) {
            *session->proven = true;
        }
    }
    return proven;
}

void tap_session_doubt(tap *t) {
    if (t->session.proven != NULL) {
        *t->session.proven = false;
    }
}
