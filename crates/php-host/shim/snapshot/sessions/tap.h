/* Connections that the application opened at boot: their traffic is followed, so that the next request gets the session
 * as the boot left it.
 *
 * tap.c           the functions of libc through which drivers talk; detecting the protocol; the end of a request
 * sql_session.c   changes of a session by SQL, at boot and in a request
 * packets.c       assembling packets of MySQL and PostgreSQL
 * mysql.c         MySQL and MariaDB
 * pgsql.c         PostgreSQL
 * redis.c         Redis
 *
 * A tap, except its tap_lasting, is in memory of the snapshot. So a restore resets it to its state at the snapshot,
 * which is correct because a request that changed more than that has either been undone or has ended the worker. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_TAP_H
#define HOWDAH_SNAPSHOT_SESSIONS_TAP_H

#include "snapshot/sessions/packets.h"
#include "sql/session_sql.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tap_protocol {
    TAP_UNSEEN, /* no data has been transferred yet */
    TAP_MYSQL,
    TAP_PGSQL,
    TAP_REDIS,
    TAP_OTHER,
} tap_protocol;

/* Statements of the boot that changed the session, each one followed by a zero byte. */
#define TAP_BOOT_TEXT 2048
/* The beginning of a statement. */
#define TAP_TEXT 512
/* The name of a database or of a prepared statement. */
#define TAP_NAME 64

/* Changes of a session by SQL. */
typedef struct tap_session {
    session_sql reader;
    char text[TAP_TEXT];
    size_t length; /* length of the whole statement */

    char boot[TAP_BOOT_TEXT];
    size_t boot_length;
    session_change unrepeatable; /* a change by the boot that cannot be repeated */
    bool holds_data;             /* rows in temporary tables of the boot are part of the session */
    session_change change;       /* by a request */
    uint64_t settings;           /* a checksum over all settings at the snapshot; 0: not known */
    uint64_t sum;
    bool *proven; /* of tap_lasting */
} tap_session;

typedef struct tap_mysql {
    packet_stream in, out;
    uint8_t phase, expects, command;
    uint16_t status, boot_status;
    uint16_t columns;
    uint8_t multi, boot_multi; /* several statements in one text are allowed */
    bool long_data;
    uint32_t last_prepared, boot_prepared; /* the highest number */
    uint32_t n_prepared;                   /* number of those not closed yet, of the boot and of the request */
    uint64_t identity;                     /* a checksum over database and user of the boot */
    uint32_t first_row;                    /* of our own query */
    char database[TAP_NAME * 4 + 4];
} tap_mysql;

typedef struct pgsql_setting {
    uint32_t name, value; /* checksums */
} pgsql_setting;

typedef struct tap_pgsql {
    packet_stream in, out;
    bool greeted, asks_encryption;
    uint8_t status;
    unsigned waiting; /* number of outstanding "ready" messages */
    bool unsynced;    /* something was sent that only a Sync completes */
    unsigned n_settings;
    pgsql_setting settings[32], boot_settings[32]; /* settings that the server reports unasked */
    unsigned n_boot_settings;
    uint32_t n_prepared, prepared; /* those not closed yet, of the boot and of the request: their number, and a checksum
                                      over their names */
    int32_t backend[2];            /* the server's process, and the key with which its queries are cancelled */
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
    uint64_t elements; /* number of elements still to come */
    unsigned waiting;

    bool selected, watching, collecting;
    bool set_up;       /* the boot has changed the state of the connection after opening it */
    uint32_t database; /* that the boot has chosen */
} tap_redis;

/* Maximum number of places where a driver may keep the numbers of a connection. */
#define TAP_PLACES 4

/* State of a connection in this process, outside of the snapshot. */
typedef struct tap_lasting {
    bool proven;        /* a reset has restored the settings of the boot */
    int32_t backend[2]; /* PostgreSQL: of the worker's own connection */
    size_t n_places;
    void *places[TAP_PLACES]; /* where the driver keeps these numbers */
} tap_lasting;

typedef struct tap {
    int fd;
    uint8_t protocol;
    bool used;       /* by this request */
    bool gone;       /* the script has closed it */
    bool asked_last; /* the last transfer was a send; for unknown protocols */
    bool answers;    /* data has been received at some time */
    bool datagrams, pipe;
    bool opaque;         /* cannot be followed: compressed, encrypted, or with unknown content */
    bool failed;         /* the last answer was an error */
    bool own;            /* the current traffic is our own */
    uint64_t received;   /* bytes received that this tap has seen */
    uint64_t at;         /* order of the last transfer */
    const char *spoiled; /* a change by a request that cannot be undone, as a literal */
    uint32_t opener;     /* number of the function that opens it in each worker; 0: none */
    bool renewable;      /* a new connection by that function can get the session of the boot */
    tap_lasting *lasting;
    tap_session session;
    union {
        tap_mysql mysql;
        tap_pgsql pgsql;
        tap_redis redis;
    };
} tap;

/* --- tap.c; those for settle.c return NULL, or the obstacle --- */

void shim_snapshot_tap_install(void);
const char *shim_snapshot_tap_boot(void);
const char *shim_snapshot_tap_settle(bool cut_off);
bool shim_snapshot_has_connections(void);

/* Between these two, the last socket is noted that is connected and stays open, and its conversation is followed. The
 * second returns it, or -1. */
void tap_opening_begin(void);
int tap_opening_end(void);
bool tap_is_opening(void);
/* At boot: the function with this number opens the connection. */
void tap_opened_by(int fd, uint32_t opener);
/* The n-th connection of the snapshot; NULL at the end. */
tap *tap_of_snapshot(size_t n);
/* Called before workers are forked from this process: true if each gets its own connection instead of this one. */
bool tap_is_renewable(const tap *t);
/* Called in a forked worker, before the restore: this descriptor is the new connection. */
bool tap_opened_instead(tap *t, int fd);
/* Called after the restore: gives the new connection the session that the boot's had. False if the server does not
 * allow that, or has other settings now. */
bool tap_renew(tap *t);

/* Sends data of our own on a boot-time connection and follows it until it is answered. False if that failed, took too
 * long, or the answer is an error. */
bool tap_exchange(tap *t, const void *data, size_t length, bool (*answered)(const tap *t));

/* --- sql_session.c --- */
void tap_session_begin(tap *t, session_dialect dialect, bool backslashes);
void tap_session_feed(tap *t, const char *text, size_t length);
/* Called when the statement is complete. */
void tap_session_end(tap *t);
/* Records a change that was not made by SQL. */
void tap_session_changed(tap *t, session_change change);
/* Calls `say` with each statement of the boot again. False as soon as one fails. */
bool tap_session_repeat(tap *t, bool (*say)(tap *t, const char *sql));
/* Adds to the checksum over all settings, which `ask` queries from the server. */
void tap_session_sum(tap *t, const void *data, size_t length);
/* Called at the snapshot: keeps the checksum, if the session can be set up again at all. */
void tap_session_keep(tap *t, bool (*ask)(tap *t));
/* Called after a reset: true if the settings are those of the snapshot. They are compared only after the worker's first
 * reset, because all resets have the same effect. */
bool tap_session_is_back(tap *t, bool (*ask)(tap *t));
/* Called when an earlier reset no longer proves that the next one works. */
void tap_session_doubt(tap *t);

/* --- one set per protocol: received and sent data, whether everything is answered, the check at the snapshot (NULL, or
 * why it cannot be taken), undoing a request's changes (NULL, or why that is impossible), and giving a new connection
 * the session of the boot --- */
void mysql_sent(tap *t, const char *data, size_t length);
void mysql_received(tap *t, const char *data, size_t length);
bool mysql_idle(const tap *t);
bool mysql_renew(tap *t);
const char *mysql_boot(tap *t);
const char *mysql_settle(tap *t);

void pgsql_sent(tap *t, const char *data, size_t length);
void pgsql_received(tap *t, const char *data, size_t length);
bool pgsql_idle(const tap *t);
const char *pgsql_boot(tap *t);
const char *pgsql_settle(tap *t);
bool pgsql_renew(tap *t);

void redis_sent(tap *t, const char *data, size_t length);
void redis_received(tap *t, const char *data, size_t length);
bool redis_idle(const tap *t);
const char *redis_boot(tap *t);
const char *redis_settle(tap *t);
bool redis_renew(tap *t);

#endif
