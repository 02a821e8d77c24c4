/* Follows conversations with PostgreSQL: statements, the state of the transaction in each "ready" message, settings
 * that the server reports, and names of prepared statements. Source: PostgreSQL's documentation, "Frontend/Backend
 * Protocol", version 3.
 *
 * Changes of a request are undone with DISCARD ALL; then the statements with which the boot set up the session are run
 * again. All of the session's settings are compared with those at the snapshot after a worker's first reset. */
#include "snapshot/php/pool_notes.h"
#include "snapshot/sessions/packets.h"
#include "snapshot/sessions/tap.h"
#include "sql/session_sql.h"

#include <string.h>
#include <strings.h>

#define VERSION_3 3
#define ASKS_FOR_TLS 80877103u
#define ASKS_FOR_GSS 80877104u

static uint32_t number(const void *at) {
    const unsigned char *bytes = at;
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t sum(const char *text, size_t length) {
    uint32_t value = 0x811c9dc5u;
    for (size_t i = 0; i < length; i++) {
        value = (value ^ (unsigned char)text[i]) * 0x01000193u;
    }
    return value;
}

/* --- prepared statements --- */

static void prepare(tap *t, const char *name) {
    tap_pgsql *p = &t->pgsql;
    if (*name != '\0') {
        p->n_prepared++;
        p->prepared += sum(name, strlen(name));
    }
}

/* When both are 0 again, every prepared statement of a request is closed, and none of the boot's is. */
static void forget_prepared(tap *t, const char *name) {
    tap_pgsql *p = &t->pgsql;
    if (*name != '\0') {
        p->n_prepared--;
        p->prepared -= sum(name, strlen(name));
    }
}

/* DEALLOCATE name, as PDO and ext/pgsql send it. In a failed transaction the server refuses it. */
static bool deallocates(tap *t) {
    static const char word[] = "DEALLOCATE ";
    const tap_session *session = &t->session;
    char name[TAP_NAME];
    if (t->pgsql.status == 'E' || session->length < sizeof word || session->length >= sizeof word - 1 + sizeof name ||
        strncasecmp(session->text, word, sizeof word - 1) != 0) {
        return false;
    }
    const char *from = session->text + sizeof word - 1;
    size_t length = session->length - (sizeof word - 1);
    if (length >= 2 && from[0] == '"' && from[length - 1] == '"') {
        from++;
        length -= 2;
    }
    for (size_t i = 0; i < length; i++) {
        char c = from[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }
    memcpy(name, from, length);
    name[length] = '\0';
    if (strcmp(name, "all") == 0) {
        return false;
    }
    forget_prepared(t, name);
    return true;
}

/* --- from the server --- */

static void take_setting(tap *t, const packet_stream *in) {
    tap_pgsql *p = &t->pgsql;
    size_t length = in->taken < sizeof in->start ? in->taken : sizeof in->start;
    const char *start = (const char *)in->start;
    const char *end = memchr(start, '\0', length);
    if (end == NULL) {
        tap_session_changed(t, SESSION_SETTING);
        return;
    }
    size_t name_length = (size_t)(end - start);
    pgsql_setting told = {sum(start, name_length), sum(end + 1, length - name_length - 1)};
    for (unsigned i = 0; i < p->n_settings; i++) {
        if (p->settings[i].name == told.name) {
            p->settings[i] = told;
            return;
        }
    }
    if (p->n_settings < sizeof p->settings / sizeof *p->settings) {
        p->settings[p->n_settings++] = told;
    } else {
        tap_session_changed(t, SESSION_SETTING);
    }
}

static void take_message(tap *t, const packet_stream *in) {
    tap_pgsql *p = &t->pgsql;
    switch (in->head[0]) {
    case 'Z':
        p->status = in->start[0];
        p->greeted = true;
        if (p->waiting > 0) {
            p->waiting--;
        } else {
            t->spoiled = "the server has sent an unrequested message";
        }
        break;
    case 'S':
        take_setting(t, in);
        break;
    case 'K':
        /* Drivers keep both in the processor's byte order. Longer keys, of version 3.2, are not followed. */
        if (in->taken == sizeof p->backend) {
            p->backend[0] = (int32_t)number(in->start);
            p->backend[1] = (int32_t)number(in->start + sizeof *p->backend);
        }
        break;
    case 'E':
        t->failed = true;
        break;
    default:
        break;
    }
}

/* --- from the client --- */

/* Handles the texts of Parse: a name, and the statement. */
static void take_parse(tap *t, packet_stream *out, const char *data, size_t length) {
    while (length > 0 && out->part < 2) {
        const char *end = memchr(data, '\0', length);
        size_t part = end != NULL ? (size_t)(end - data) : length;
        if (out->part == 1) {
            tap_session_feed(t, data, part);
        }
        if (end == NULL) {
            return;
        }
        out->part++;
        if (out->part == 1) {
            tap_session_begin(t, SESSION_PGSQL, false);
        } else {
            tap_session_end(t);
        }
        data += part + 1;
        length -= part + 1;
    }
}

static void begin_message(tap *t, const packet_stream *out) {
    tap_pgsql *p = &t->pgsql;
    switch (out->head[0]) {
    case 'Q':
        tap_session_begin(t, SESSION_PGSQL, false);
        t->failed = false;
        p->waiting++;
        p->unsynced = false;
        break;
    case 'F': /* libpq uses it for large objects */
    case 'S':
        p->waiting++;
        p->unsynced = false;
        break;
    case 'P':
    case 'B':
    case 'D':
    case 'E':
    case 'C':
    case 'H':
        p->unsynced = true;
        break;
    case 'X':
        t->spoiled = "the script has closed it";
        break;
    default:
        break;
    }
}

static void take_content(tap *t, packet_stream *out, const char *data, size_t length) {
    if (out->head[0] == 'P') {
        take_parse(t, out, data, length);
    } else if (out->head[0] == 'Q' && length > 0) {
        /* Everything except the zero at its end. */
        tap_session_feed(t, data, length == out->left ? length - 1 : length);
    }
}

static void end_message(tap *t, packet_stream *out) {
    const size_t kept = out->taken < sizeof out->start ? out->taken : sizeof out->start;
    const char *start = (const char *)out->start;
    switch (out->head[0]) {
    case 'Q':
        if (!deallocates(t)) {
            tap_session_end(t);
        }
        break;
    case 'P': {
        if (memchr(start, '\0', kept) == NULL) {
            tap_session_changed(t, SESSION_PREPARED);
        } else {
            prepare(t, start);
        }
        break;
    }
    case 'C':
        if (kept > 1 && start[0] == 'S' && memchr(start, '\0', kept) != NULL) {
            forget_prepared(t, start + 1);
        }
        break;
    default:
        break;
    }
}

static bool begin_packet(tap *t, packet_stream *stream, bool sent) {
    stream->left = number(stream->head + 1);
    if (stream->left < 4) {
        t->opaque = true;
        return false;
    }
    stream->left -= 4;
    stream->taken = 0;
    stream->part = 0;
    if (sent) {
        begin_message(t, stream);
    }
    return stream->left == 0;
}

static void take_part(tap *t, packet_stream *stream, bool sent, const char *data, size_t length) {
    if (sent) {
        take_content(t, stream, data, length);
    } else if (t->own && stream->head[0] == 'D') {
        tap_session_sum(t, data, length);
    }
}

static void end_packet(tap *t, packet_stream *stream, bool sent) {
    if (sent) {
        end_message(t, stream);
    } else {
        take_message(t, stream);
    }
    stream->n_head = 0;
}

static const packet_protocol protocol = {
    .head_size = 5, .begin = begin_packet, .content = take_part, .end = end_packet};

/* The first message has no type byte: its length, then the version or a request for encryption. Drivers send it in one
 * piece. */
static void take_startup(tap *t, const char *data, size_t length) {
    tap_pgsql *p = &t->pgsql;
    if (length < 8 || number(data) != length) {
        t->opaque = true;
        return;
    }
    uint32_t version = number(data + 4);
    if (version == ASKS_FOR_TLS || version == ASKS_FOR_GSS) {
        p->asks_encryption = true;
    } else if (version >> 16 == VERSION_3) {
        p->greeted = true;
        p->waiting = 1;
    } else {
        t->opaque = true;
    }
}

void pgsql_sent(tap *t, const char *data, size_t length) {
    if (!t->pgsql.greeted) {
        take_startup(t, data, length);
    } else {
        packets_take(t, &protocol, &t->pgsql.out, true, data, length);
    }
}

void pgsql_received(tap *t, const char *data, size_t length) {
    tap_pgsql *p = &t->pgsql;
    if (p->asks_encryption && length > 0 && !t->opaque) {
        /* The answer is one byte: no, or an encrypted connection begins. */
        p->asks_encryption = false;
        t->opaque = *data++ != 'N';
        length--;
    }
    packets_take(t, &protocol, &p->in, false, data, length);
}

bool pgsql_idle(const tap *t) {
    const tap_pgsql *p = &t->pgsql;
    return p->greeted && p->waiting == 0 && !p->unsynced && p->in.n_head == 0 && p->out.n_head == 0;
}

/* --- resetting --- */

static bool query(tap *t, const char *sql) {
    char message[TAP_TEXT + 256];
    size_t length = strlen(sql) + 5;
    if (length + 1 > sizeof message) {
        return false;
    }
    message[0] = 'Q';
    message[1] = message[2] = 0;
    message[3] = (char)(length >> 8);
    message[4] = (char)length;
    strcpy(message + 5, sql);
    return tap_exchange(t, message, length + 1, pgsql_idle);
}

static bool sum_settings(tap *t) {
    /* Without those of extensions, which appear as extensions are loaded. */
    return query(t, "SELECT name, setting FROM pg_settings WHERE category <> 'Customized Options' UNION ALL "
                    "SELECT 'user', concat_ws(' ', current_user, session_user, current_database()) ORDER BY 1") &&
           t->session.sum != 0;
}

static bool roll_back(tap *t) {
    return t->pgsql.status == 'I' || (query(t, "ROLLBACK") && t->pgsql.status == 'I');
}

const char *pgsql_boot(tap *t) {
    tap_pgsql *p = &t->pgsql;
    if (p->status != 'I') {
        return "a transaction is open on it; end it first";
    }
    memcpy(p->boot_settings, p->settings, sizeof p->settings);
    p->n_boot_settings = p->n_settings;
    if (p->n_prepared != 0 || p->prepared != 0) {
        t->session.unrepeatable = SESSION_PREPARED;
    }
    p->n_prepared = p->prepared = 0;
    tap_session_keep(t, sum_settings);
    return NULL;
}

static bool is_boot_state(const tap_pgsql *p) {
    return p->n_settings == p->n_boot_settings && memcmp(p->settings, p->boot_settings, sizeof p->settings) == 0;
}

static bool reset(tap *t) {
    if (t->session.settings == 0 || !roll_back(t) || !query(t, "DISCARD ALL")) {
        return false;
    }
    return tap_session_repeat(t, query) && is_boot_state(&t->pgsql) && tap_session_is_back(t, sum_settings);
}

bool pgsql_renew(tap *t) {
    tap_session_doubt(t);
    return t->pgsql.backend[1] != 0 && !t->session.holds_data && reset(t);
}

const char *pgsql_settle(tap *t) {
    tap_pgsql *p = &t->pgsql;
    bool open = p->status != 'I';
    if (open && !roll_back(t)) {
        return "a transaction that cannot be rolled back";
    }
    /* The end of the transaction resets settings, and the server reports that. */
    if (!is_boot_state(p)) {
        tap_session_changed(t, SESSION_SETTING);
    }
    if (p->n_prepared != 0 || p->prepared != 0) {
        tap_session_changed(t, SESSION_PREPARED);
    }
    if (t->session.change != SESSION_SAME) {
        if (!reset(t)) {
            return session_change_name(t->session.change);
        }
        shim_snapshot_count_reset();
        shim_snapshot_advise(TAP_ADVICE_SESSION, session_change_name(t->session.change));
        return NULL;
    }
    if (open) {
        shim_snapshot_count_reset();
        shim_snapshot_advise(TAP_ADVICE_TRANSACTION, NULL);
    }
    return NULL;
}
