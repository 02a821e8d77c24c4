/* Connections that the application has opened at boot: what passes on them is read along, so that the next request gets
 * the session that the boot left.
 *
 * tap.c           the functions of libc through which drivers talk; which protocol it is; when a request is over
 * sql_session.c   what SQL did to a session, at boot and in a request
 * packets.c       putting packets of MySQL and PostgreSQL together
 * mysql.c         MySQL and MariaDB
 * pgsql.c         PostgreSQL
 * redis.c         Redis
 *
 * All of a tap lies in memory of the snapshot. So after a restore it says again what it said at the snapshot, which is
 * true because a request that changed more than that has either been made good for or has ended the worker. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_TAP_H
#define HOWDAH_SNAPSHOT_SESSIONS_TAP_H

#include "snapshot/sessions/packets.h"
#include "sql/session_sql.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tap_protocol {
    TAP_UNSEEN, /* nothing has been said yet */
    TAP_MYSQL,
    TAP_PGSQL,
    TAP_REDIS,
    TAP_OTHER,
} tap_protocol;

/* Statements of the boot that changed the session, one behind the other, each with a zero. */
#define TAP_BOOT_TEXT 2048
/* The beginning of a statement. */
#define TAP_TEXT 512
/* The name of a database or of a prepared statement. */
#define TAP_NAME 64

/* Changes of a session by SQL. */
typedef struct tap_session {
    session_sql reader;
    char text[TAP_TEXT];
    size_t length; /* of the whole statement */

    char boot[TAP_BOOT_TEXT];
    size_t boot_length;
    session_change unrepeatable; /* the boot left this, which cannot be done again */
    bool holds_data;             /* what lies in temporary tables of the boot is part of the session */
    session_change change;       /* a request's */
    uint64_t settings;           /* a sum over all settings at the snapshot; 0: not known */
    uint64_t sum;
    bool *proven; /* outside of the snapshot: a reset has brought back these settings */
} tap_session;

typedef struct tap_mysql {
    packet_stream in, out;
    uint8_t phase, expects, command;
    uint16_t status, boot_status;
    uint16_t columns;
    uint8_t multi, boot_multi; /* whether several statements in one text are allowed */
    bool long_data;
    uint32_t last_prepared, boot_prepared; /* the highest number */
    uint32_t n_prepared;                   /* not closed yet, of the boot or of a request */
    uint64_t identity;                     /* a sum over database and user of the boot */
    uint32_t first_row;                    /* of an own query */
    char database[TAP_NAME * 4 + 4];
} tap_mysql;

typedef struct pgsql_setting {
    uint32_t name, value; /* sums */
} pgsql_setting;

typedef struct tap_pgsql {
    packet_stream in, out;
    bool greeted, asks_encryption;
    uint8_t status;
    unsigned waiting; /* for this many times "ready" */
    bool unsynced;    /* something was sent that only a Sync ends */
    unsigned n_settings;
    pgsql_setting settings[32], boot_settings[32]; /* that the server tells of by itself */
    unsigned n_boot_settings;
    uint32_t n_prepared, prepared; /* not closed yet, of the boot or of a request; a sum over their names */
} tap_pgsql;

typedef struct tap_redis {
    /* The command that is being sent. */
    uint8_t state;
    uint32_t arguments, argument;
    uint64_t number, left;
    char name[24], detail[24];
    uint8_t length;
    /* The answer that is being read. */
    uint8_t answer_state, answer_kind;
    bool negative, pushed;
    uint64_t answer_number, answer_left;
    uint64_t elements; /* still to come */
    unsigned waiting;

    bool selected, watching, collecting;
    uint32_t database; /* that the boot has chosen */
} tap_redis;

typedef struct tap {
    int fd;
    uint8_t protocol;
    bool used;       /* in this request */
    bool gone;       /* the script has closed it */
    bool asked_last; /* what passed last went out; of protocols that are not known */
    bool answers;    /* something has come in, ever */
    bool datagrams, pipe;
    bool opaque;         /* cannot be read along: compressed, encrypted, or said what is not known */
    bool failed;         /* the last answer was an error */
    bool own;            /* what passes now is ours */
    uint64_t received;   /* bytes that this tap has seen come in */
    uint64_t at;         /* when something passed last */
    const char *spoiled; /* what cannot be made good for, a literal; of a request */
    tap_session session;
    union {
        tap_mysql mysql;
        tap_pgsql pgsql;
        tap_redis redis;
    };
} tap;

/* --- tap.c; those for settle.c return NULL, or what stands in the way --- */

void shim_snapshot_tap_install(void);
const char *shim_snapshot_tap_boot(void);
const char *shim_snapshot_tap_settle(bool cut_off);
bool shim_snapshot_has_connections(void);

/* Sends something of our own on a boot-time connection and reads along until it is answered. False when that failed,
 * took too long, or the answer is an error. */
bool tap_exchange(tap *t, const void *data, size_t length, bool (*answered)(const tap *t));

/* --- sql_session.c --- */
void tap_session_begin(tap *t, session_dialect dialect, bool backslashes);
void tap_session_feed(tap *t, const char *text, size_t length);
/* The statement is complete. */
void tap_session_end(tap *t);
/* A change that no text made. */
void tap_session_changed(tap *t, session_change change);
/* Calls `say` with each statement of the boot again. False as soon as one fails. */
bool tap_session_repeat(tap *t, bool (*say)(tap *t, const char *sql));
/* Adds to the sum over all settings, which `ask` has the server tell. */
void tap_session_sum(tap *t, const void *data, size_t length);
/* At the snapshot: keeps the sum, if the session can be set up again at all. */
void tap_session_keep(tap *t, bool (*ask)(tap *t));
/* After a reset: true if the settings are those of the snapshot. They are compared after the worker's first reset; what
 * one reset brings back, all do. */
bool tap_session_is_back(tap *t, bool (*ask)(tap *t));
/* That one did no longer proves it for the next. */
void tap_session_doubt(tap *t);

/* --- one for each protocol: what was sent and received, whether all is answered, what the snapshot finds (NULL, or
 * why it cannot be taken), and making good for a request (NULL, or why that is impossible) --- */
void mysql_sent(tap *t, const char *data, size_t length);
void mysql_received(tap *t, const char *data, size_t length);
bool mysql_idle(const tap *t);
const char *mysql_boot(tap *t);
const char *mysql_settle(tap *t);

void pgsql_sent(tap *t, const char *data, size_t length);
void pgsql_received(tap *t, const char *data, size_t length);
bool pgsql_idle(const tap *t);
const char *pgsql_boot(tap *t);
const char *pgsql_settle(tap *t);

void redis_sent(tap *t, const char *data, size_t length);
void redis_received(tap *t, const char *data, size_t length);
bool redis_idle(const tap *t);
const char *redis_boot(tap *t);
const char *redis_settle(tap *t);

#endif
