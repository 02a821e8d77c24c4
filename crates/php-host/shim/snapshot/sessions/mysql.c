/* Follows conversations with MySQL and MariaDB: the commands, the end of each answer, and its flags. Source: the
 * protocol as MariaDB's documentation describes it ("Client/Server Protocol", mariadb.com/kb).
 *
 * Changes of a request are undone with COM_RESET_CONNECTION; then the statements with which the boot set up the session
 * are run again. All of the session's settings are compared with those at the snapshot after a worker's first reset,
 * database and user after each. */
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/pool_notes.h"
#include "snapshot/sessions/packets.h"
#include "snapshot/sessions/tap.h"
#include "sql/session_sql.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum phase { GREETING, LOGIN, WELCOME, COMMANDS };
enum expects {
    NO_ANSWER,
    FIRST_PACKET,
    COLUMN_PACKETS,
    ROW_PACKETS,
    PREPARED_PACKET,
    PARAMETER_PACKETS,
    ANY_PACKET,
    FILE_ASKED
};

enum {
    COM_QUIT = 0x01,
    COM_INIT_DB = 0x02,
    COM_QUERY = 0x03,
    COM_FIELD_LIST = 0x04,
    COM_STATISTICS = 0x09,
    COM_CHANGE_USER = 0x11,
    COM_STMT_PREPARE = 0x16,
    COM_STMT_EXECUTE = 0x17,
    COM_STMT_SEND_LONG_DATA = 0x18,
    COM_STMT_CLOSE = 0x19,
    COM_STMT_RESET = 0x1a,
    COM_SET_OPTION = 0x1b,
    COM_STMT_FETCH = 0x1c,
    COM_RESET_CONNECTION = 0x1f,
};

#define CAN_COMPRESS (1u << 5)
#define CAN_ENCRYPT (1u << 11)
#define CAN_MULTI (1u << 16)
#define CAN_LEAVE_EOF_OUT (1u << 24)
#define CAN_COMPRESS_ZSTD (1u << 26)

#define IN_TRANSACTION (1u | 1u << 13)
#define AUTOCOMMIT (1u << 1)
#define MORE_RESULTS (1u << 3)
#define CURSOR_EXISTS (1u << 6)
#define NO_BACKSLASH_ESCAPES (1u << 9)
#define SESSION_STATE_CHANGED (1u << 14)

#define LONGEST_PACKET 0xffffffu

static uint32_t number(const unsigned char *bytes, int length) {
    uint32_t value = 0;
    for (int i = length; i-- > 0;) {
        value = value << 8 | bytes[i];
    }
    return value;
}

/* Returns the position after a number of variable length. */
static const unsigned char *after_number(const unsigned char *at) {
    return at + (*at < 0xfb ? 1 : *at == 0xfc ? 3 : *at == 0xfd ? 4 : 9);
}

static void take_status(tap *t, unsigned status) {
    t->mysql.status = (uint16_t)status;
    if ((status & SESSION_STATE_CHANGED) != 0) {
        tap_session_changed(t, SESSION_UNKNOWN);
    }
}

/* --- from the server --- */

static void end_result(tap *t) {
    t->mysql.expects = (t->mysql.status & MORE_RESULTS) != 0 ? FIRST_PACKET : NO_ANSWER;
}

static void take_ok(tap *t, const packet_stream *in) {
    const unsigned char *at = after_number(after_number(in->start + 1));
    take_status(t, number(at, 2));
    t->failed = false;
    end_result(t);
}

static void take_error(tap *t) {
    t->failed = true;
    t->mysql.expects = NO_ANSWER;
}

/* The first packet of an answer to a command. */
static void take_first_packet(tap *t, const packet_stream *in) {
    tap_mysql *m = &t->mysql;
    switch (in->start[0]) {
    case 0x00:
        take_ok(t, in);
        break;
    case 0xff:
        take_error(t);
        break;
    case 0xfe:
        take_status(t, number(in->start + 3, 2));
        end_result(t);
        break;
    case 0xfb:
        m->expects = FILE_ASKED;
        break;
    default:
        t->failed = false;
        m->expects = COLUMN_PACKETS;
        break;
    }
}

static void take_prepared(tap *t, const packet_stream *in) {
    tap_mysql *m = &t->mysql;
    if (in->start[0] != 0x00) {
        take_error(t);
        return;
    }
    t->failed = false;
    uint32_t prepared = number(in->start + 1, 4);
    m->last_prepared = prepared > m->last_prepared ? prepared : m->last_prepared;
    m->n_prepared++;
    m->columns = (uint16_t)number(in->start + 5, 2);
    m->expects = number(in->start + 7, 2) > 0 ? PARAMETER_PACKETS : m->columns > 0 ? ROW_PACKETS : NO_ANSWER;
}

/* Keeps the name of the database, which begins the row of our own query. */
static void keep_database(tap *t, const packet_stream *in) {
    tap_mysql *m = &t->mysql;
    size_t length = in->start[0];
    if (m->first_row == 0 && !snapshot_taken() && length < sizeof in->start - 1 && length < in->taken) {
        memcpy(m->database, in->start + 1, length);
        m->database[length] = '\0';
    }
    m->first_row++;
}

static void take_login_answer(tap *t, const packet_stream *in) {
    if (in->start[0] == 0x00) {
        take_ok(t, in);
        t->mysql.phase = COMMANDS;
    } else if (in->start[0] == 0xff) {
        t->spoiled = "the server has refused the login";
        t->mysql.expects = NO_ANSWER;
    }
}

static void take_packet(tap *t, const packet_stream *in) {
    tap_mysql *m = &t->mysql;
    const bool ends = in->start[0] == 0xfe && in->taken < 9;
    if (m->phase != COMMANDS) {
        if (m->phase == GREETING) {
            m->phase = LOGIN;
            t->opaque = t->opaque || in->start[0] != 10;
        } else {
            take_login_answer(t, in);
        }
        return;
    }
    switch (m->expects) {
    case FIRST_PACKET:
        take_first_packet(t, in);
        break;
    case COLUMN_PACKETS:
    case PARAMETER_PACKETS:
        if (!ends) {
            break;
        }
        take_status(t, number(in->start + 3, 2));
        if (m->expects == PARAMETER_PACKETS) {
            m->expects = m->columns > 0 ? ROW_PACKETS : NO_ANSWER;
        } else {
            m->expects = (m->status & CURSOR_EXISTS) != 0 ? NO_ANSWER : ROW_PACKETS;
        }
        break;
    case ROW_PACKETS:
        if (ends) {
            take_status(t, number(in->start + 3, 2));
            if (m->command == COM_STMT_PREPARE || m->command == COM_FIELD_LIST) {
                m->expects = NO_ANSWER;
            } else {
                end_result(t);
            }
        } else if (in->start[0] == 0xff) {
            take_error(t);
        } else if (t->own) {
            keep_database(t, in);
        }
        break;
    case PREPARED_PACKET:
        take_prepared(t, in);
        break;
    case ANY_PACKET:
        m->expects = NO_ANSWER;
        break;
    default:
        t->spoiled = "the server has sent an unrequested message";
        break;
    }
}

/* --- from the client --- */

static void close_prepared(tap *t, uint32_t number) {
    tap_mysql *m = &t->mysql;
    if (snapshot_taken() && number <= m->boot_prepared) {
        tap_session_changed(t, SESSION_PREPARED);
    } else {
        m->n_prepared -= m->n_prepared > 0;
    }
}

/* True for SET AUTOCOMMIT as mysqli sends it: the status flags report it, and restore_autocommit() undoes it. */
static bool sets_autocommit(const tap_session *session) {
    static const char set[] = "SET AUTOCOMMIT";
    char text[40];
    if (session->length >= sizeof text || session->length < sizeof set) {
        return false;
    }
    memcpy(text, session->text, session->length);
    text[session->length] = '\0';
    char value = '\0', rest = '\0';
    return strncasecmp(text, set, sizeof set - 1) == 0 &&
           sscanf(text + sizeof set - 1, " = %c %c", &value, &rest) == 1 && (value == '0' || value == '1');
}

static void begin_command(tap *t, unsigned char command) {
    tap_mysql *m = &t->mysql;
    m->command = command;
    switch (command) {
    case COM_QUERY:
    case COM_STMT_PREPARE:
        tap_session_begin(t, SESSION_MYSQL, (m->status & NO_BACKSLASH_ESCAPES) == 0);
        m->expects = command == COM_QUERY ? FIRST_PACKET : PREPARED_PACKET;
        break;
    case COM_STMT_SEND_LONG_DATA:
        m->long_data = true;
        break;
    case COM_STMT_CLOSE:
        break;
    case COM_QUIT:
        t->spoiled = "the script has closed it";
        break;
    case COM_FIELD_LIST:
    case COM_STMT_FETCH:
        m->expects = ROW_PACKETS;
        break;
    case COM_STATISTICS:
        m->expects = ANY_PACKET;
        break;
    default:
        m->expects = FIRST_PACKET;
        break;
    }
}

/* A command has been sent completely. */
static void end_command(tap *t, const packet_stream *out) {
    tap_mysql *m = &t->mysql;
    switch (m->command) {
    case COM_QUERY:
    case COM_STMT_PREPARE:
        if (!sets_autocommit(&t->session)) {
            tap_session_end(t);
        }
        break;
    case COM_STMT_CLOSE:
        close_prepared(t, number(out->start + 1, 4));
        break;
    case COM_STMT_EXECUTE:
    case COM_STMT_RESET:
        m->long_data = false;
        break;
    case COM_SET_OPTION:
        m->multi = number(out->start + 1, 2) == 0;
        break;
    case COM_INIT_DB:
        /* At boot, the database is queried at the snapshot. */
        if (snapshot_taken()) {
            tap_session_changed(t, SESSION_SETTING);
        }
        break;
    case COM_CHANGE_USER:
        /* A login like the first one; mysqli does this with persistent connections. */
        m->phase = WELCOME;
        tap_session_changed(t, SESSION_UNKNOWN);
        /* From now on, a reset restores the character set of this login. */
        tap_session_doubt(t);
        break;
    case COM_RESET_CONNECTION:
        tap_session_changed(t, SESSION_UNKNOWN);
        break;
    default:
        break;
    }
}

static void take_login(tap *t, const packet_stream *out) {
    uint32_t can = number(out->start, 4);
    if ((can & (CAN_COMPRESS | CAN_ENCRYPT | CAN_LEAVE_EOF_OUT | CAN_COMPRESS_ZSTD)) != 0) {
        t->opaque = true;
    }
    t->mysql.multi = (can & CAN_MULTI) != 0;
    t->mysql.phase = WELCOME;
}

/* Handles a part of a packet's content; `out->taken` bytes came before. */
static void take_content(tap *t, packet_stream *out, const char *data, size_t length) {
    tap_mysql *m = &t->mysql;
    if (m->phase != COMMANDS || m->expects == FILE_ASKED) {
        return;
    }
    size_t from = 0;
    if (out->taken == 0 && !out->goes_on && length > 0) {
        begin_command(t, (unsigned char)data[0]);
        from = 1;
    }
    if (m->command == COM_QUERY || m->command == COM_STMT_PREPARE) {
        tap_session_feed(t, data + from, length - from);
    }
}

static void end_packet(tap *t, packet_stream *stream, bool sent) {
    tap_mysql *m = &t->mysql;
    bool longest = number(stream->head, 3) == LONGEST_PACKET;
    if (!longest) {
        if (!sent) {
            take_packet(t, stream);
        } else if (m->phase == LOGIN) {
            take_login(t, stream);
        } else if (m->phase == COMMANDS && m->expects == FILE_ASKED) {
            /* An empty packet ends a file; the server answers it. */
            m->expects = stream->taken == 0 ? FIRST_PACKET : FILE_ASKED;
        } else if (m->phase == COMMANDS) {
            end_command(t, stream);
        }
    }
    stream->goes_on = longest;
    stream->n_head = 0;
    if (!longest) {
        stream->taken = 0;
    }
}

static bool begin_packet(tap *t, packet_stream *stream, bool sent) {
    (void)t;
    (void)sent;
    stream->left = number(stream->head, 3);
    if (!stream->goes_on) {
        memset(stream->start, 0, sizeof stream->start);
    }
    return stream->left == 0;
}

static void take_part(tap *t, packet_stream *stream, bool sent, const char *data, size_t length) {
    if (sent) {
        take_content(t, stream, data, length);
    } else if (t->own) {
        tap_session_sum(t, data, length);
    }
}

static const packet_protocol protocol = {
    .head_size = 4, .begin = begin_packet, .content = take_part, .end = end_packet};

void mysql_sent(tap *t, const char *data, size_t length) {
    packets_take(t, &protocol, &t->mysql.out, true, data, length);
}

void mysql_received(tap *t, const char *data, size_t length) {
    packets_take(t, &protocol, &t->mysql.in, false, data, length);
}

bool mysql_idle(const tap *t) {
    const tap_mysql *m = &t->mysql;
    return m->phase == COMMANDS && m->expects == NO_ANSWER && m->in.n_head == 0 && m->out.n_head == 0 &&
           !m->in.goes_on && !m->out.goes_on;
}

/* --- resetting --- */

static bool command(tap *t, unsigned char command, const void *data, size_t length) {
    unsigned char packet[TAP_TEXT + 256];
    if (length + 5 > sizeof packet) {
        return false;
    }
    packet[0] = (unsigned char)(length + 1);
    packet[1] = (unsigned char)((length + 1) >> 8);
    packet[2] = packet[3] = 0;
    packet[4] = command;
    memcpy(packet + 5, data, length);
    return tap_exchange(t, packet, length + 5, mysql_idle);
}

static bool query(tap *t, const char *sql) {
    return command(t, COM_QUERY, sql, strlen(sql));
}

static bool identify(tap *t) {
    t->mysql.first_row = 0;
    t->session.sum = 0;
    return query(t, "SELECT DATABASE(), CURRENT_USER(), CURRENT_ROLE()");
}

/* Queries all settings of the session. Counters of the server are left out. */
static bool sum_settings(tap *t) {
    return query(t, "SHOW SESSION VARIABLES WHERE Variable_name NOT IN ('timestamp','rand_seed1','rand_seed2',"
                    "'last_insert_id','identity','insert_id','error_count','warning_count','pseudo_thread_id',"
                    "'last_gtid','gtid_binlog_pos','gtid_binlog_state','gtid_current_pos','gtid_slave_pos',"
                    "'gtid_executed','gtid_purged','gtid_next','wsrep_last_written_gtid','wsrep_last_seen_gtid')");
}

static bool restore_autocommit(tap *t) {
    const tap_mysql *m = &t->mysql;
    if (((m->status ^ m->boot_status) & AUTOCOMMIT) == 0) {
        return true;
    }
    return query(t, (m->boot_status & AUTOCOMMIT) != 0 ? "SET autocommit=1" : "SET autocommit=0");
}

static bool restore_option(tap *t) {
    tap_mysql *m = &t->mysql;
    if (m->multi == m->boot_multi) {
        return true;
    }
    unsigned char option[2] = {m->boot_multi ? 0 : 1, 0};
    return command(t, COM_SET_OPTION, option, sizeof option);
}

static bool roll_back(tap *t) {
    return (t->mysql.status & IN_TRANSACTION) == 0 || (query(t, "ROLLBACK") && (t->mysql.status & IN_TRANSACTION) == 0);
}

const char *mysql_boot(tap *t) {
    tap_mysql *m = &t->mysql;
    m->boot_status = m->status;
    m->boot_multi = m->multi;
    m->boot_prepared = m->last_prepared;
    if (m->n_prepared > 0) {
        /* A reset would close them, and their numbers are in the application's memory. */
        t->session.unrepeatable = SESSION_PREPARED;
    }
    m->n_prepared = 0;
    if ((m->status & IN_TRANSACTION) != 0) {
        if ((m->status & AUTOCOMMIT) != 0) {
            return "a transaction is open on it; end it first";
        }
        if (!roll_back(t)) {
            return "its open transaction cannot be rolled back";
        }
        m->boot_status = m->status;
    }
    if (t->session.unrepeatable == SESSION_SAME && identify(t)) {
        m->identity = t->session.sum;
        tap_session_keep(t, sum_settings);
    }
    return NULL;
}

/* Makes the session like a new one, and sets it up as the boot did. */
static bool reset(tap *t) {
    tap_mysql *m = &t->mysql;
    if (t->session.settings == 0 || !command(t, COM_RESET_CONNECTION, "", 0)) {
        return false;
    }
    if (m->database[0] != '\0' && !command(t, COM_INIT_DB, m->database, strlen(m->database))) {
        return false;
    }
    return tap_session_repeat(t, query) && restore_autocommit(t) && restore_option(t) && identify(t) &&
           t->session.sum == m->identity && tap_session_is_back(t, sum_settings);
}

bool mysql_renew(tap *t) {
    tap_session_doubt(t);
    return !t->session.holds_data && reset(t);
}

const char *mysql_settle(tap *t) {
    tap_mysql *m = &t->mysql;
    if (m->n_prepared > 0 || m->long_data) {
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
    if ((m->status & IN_TRANSACTION) != 0) {
        bool forgotten = (m->status & AUTOCOMMIT) != 0;
        if (!roll_back(t)) {
            return "a transaction that cannot be rolled back";
        }
        shim_snapshot_count_reset();
        if (forgotten) {
            shim_snapshot_advise(TAP_ADVICE_TRANSACTION, NULL);
        }
    }
    return restore_autocommit(t) && restore_option(t) ? NULL : "a setting of the session";
}
