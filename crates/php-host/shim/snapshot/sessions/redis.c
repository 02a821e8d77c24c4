/* Follows conversations with Redis: names of commands, and ends of answers. Source: Redis's documentation of its
 * protocol (RESP2 and RESP3) and of its commands: those that change the connection are few, and all others pass. */
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/pool_notes.h"
#include "snapshot/sessions/tap.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum state { BEGIN, COUNT, LENGTH_SIGN, LENGTH, TEXT, LINE_END };
enum answer_state { KIND, ANSWER_NUMBER, ANSWER_LINE, ANSWER_TEXT };

/* --- from the client --- */

static bool is_in(const char *word, const char *const list[]) {
    for (; *list != NULL; list++) {
        if (strcasecmp(word, *list) == 0) {
            return true;
        }
    }
    return false;
}

static void changed(tap *t, const char *what) {
    if (!t->own && t->spoiled == NULL && snapshot_taken()) {
        t->spoiled = what;
    } else if (!snapshot_taken() && !tap_is_opening()) {
        t->redis.set_up = true;
    }
}

static void take_command(tap *t) {
    tap_redis *r = &t->redis;
    static const char *const asking[] = {"ID",      "INFO",    "LIST",         "GETNAME",  "KILL", "PAUSE",
                                         "UNPAUSE", "UNBLOCK", "TRACKINGINFO", "GETREDIR", "HELP", NULL};
    static const char *const changing[] = {"AUTH",        "HELLO",        "SUBSCRIBE",    "PSUBSCRIBE", "SSUBSCRIBE",
                                           "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR",    "RESET",
                                           "READONLY",    "READWRITE",    "ASKING",       "SYNC",       "PSYNC",
                                           "REPLCONF",    "QUIT",         "FAILOVER",     NULL};
    const char *name = r->name;
    t->failed = false;
    r->waiting++;
    if (strcasecmp(name, "SELECT") == 0) {
        r->selected = true;
        if (!snapshot_taken()) {
            unsigned database = 0;
            r->database = sscanf(r->detail, "%u", &database) == 1 ? database : 0;
        }
    } else if (strcasecmp(name, "WATCH") == 0) {
        r->watching = true;
    } else if (strcasecmp(name, "UNWATCH") == 0) {
        r->watching = r->watching && r->collecting;
    } else if (strcasecmp(name, "MULTI") == 0) {
        r->collecting = true;
    } else if (strcasecmp(name, "EXEC") == 0 || strcasecmp(name, "DISCARD") == 0) {
        r->collecting = r->watching = false;
    } else if (strcasecmp(name, "CLIENT") == 0 && !is_in(r->detail, asking)) {
        changed(t, "a property of the connection was set with CLIENT");
    } else if (strcasecmp(name, "SCRIPT") == 0 && strcasecmp(r->detail, "DEBUG") == 0) {
        changed(t, "script debugging was switched on");
    } else if (is_in(name, changing)) {
        changed(t, "a command changed the connection's state (login, protocol, subscriptions)");
    }
}

static void end_argument(tap *t) {
    tap_redis *r = &t->redis;
    if (r->argument < 2) {
        char *text = r->argument == 0 ? r->name : r->detail;
        text[r->length] = '\0';
    }
    r->argument++;
    if (r->argument == r->arguments) {
        take_command(t);
        r->state = BEGIN;
    } else {
        r->state = LENGTH_SIGN;
    }
}

static void take_text(tap_redis *r, const char *data, size_t length) {
    char *text = r->argument == 0 ? r->name : r->detail;
    for (size_t i = 0; i < length && r->argument < 2; i++) {
        /* A longer name cannot be one of the commands that matter. */
        text[r->length] = r->length < sizeof r->name - 1 ? data[i] : text[r->length];
        r->length += r->length < sizeof r->name - 1;
    }
}

/* Handles a digit or the end of a line. True at the end. */
static bool take_digit(tap *t, uint64_t *number, char c) {
    if (c >= '0' && c <= '9' && *number < UINT32_MAX) {
        *number = *number * 10 + (uint64_t)(c - '0');
    } else if (c != '\r' && c != '\n') {
        t->opaque = true;
    }
    return c == '\n';
}

static void take_sent(tap *t, char c) {
    tap_redis *r = &t->redis;
    switch (r->state) {
    case BEGIN:
        /* An inline command, without a type character, is also valid, but no client sends one. */
        t->opaque = c != '*';
        r->state = COUNT;
        r->number = 0;
        break;
    case COUNT:
        if (take_digit(t, &r->number, c)) {
            r->arguments = (uint32_t)r->number;
            r->argument = 0;
            r->name[0] = r->detail[0] = '\0';
            r->state = r->arguments > 0 ? LENGTH_SIGN : BEGIN;
        }
        break;
    case LENGTH_SIGN:
        t->opaque = c != '$';
        r->state = LENGTH;
        r->number = 0;
        break;
    case LENGTH:
        if (take_digit(t, &r->number, c)) {
            r->left = r->number;
            r->length = 0;
            r->state = r->left > 0 ? TEXT : LINE_END;
        }
        break;
    default:
        if (c == '\n') {
            end_argument(t);
        }
        break;
    }
}

void redis_sent(tap *t, const char *data, size_t length) {
    tap_redis *r = &t->redis;
    while (length > 0 && !t->opaque) {
        size_t part = 1;
        if (r->state == TEXT) {
            part = length < r->left ? length : (size_t)r->left;
            take_text(r, data, part);
            r->left -= part;
            r->state = r->left == 0 ? LINE_END : TEXT;
        } else {
            take_sent(t, *data);
        }
        data += part;
        length -= part;
    }
}

/* --- from the server --- */

static void end_element(tap *t) {
    tap_redis *r = &t->redis;
    r->answer_state = KIND;
    if (r->elements > 0) {
        r->elements--;
    }
    if (r->elements > 0) {
        return;
    }
    if (r->pushed) {
        r->pushed = false;
    } else if (r->waiting > 0) {
        r->waiting--;
    } else {
        t->spoiled = "the server has sent an unrequested message";
    }
}

static void begin_element(tap *t, char kind) {
    tap_redis *r = &t->redis;
    if (r->elements == 0) {
        r->elements = 1;
        r->pushed = kind == '>';
        t->failed = t->failed || kind == '-' || kind == '!';
    }
    r->answer_kind = (uint8_t)kind;
    r->answer_number = 0;
    r->negative = false;
    r->answer_state = strchr("$=!*~%>|", kind) != NULL && kind != '\0' ? ANSWER_NUMBER : ANSWER_LINE;
    t->opaque = t->opaque || kind == '\0' || strchr("$=!*~%>|+-:_#,(", kind) == NULL;
}

static void end_number(tap *t) {
    tap_redis *r = &t->redis;
    switch (r->answer_kind) {
    case '*':
    case '~':
    case '>':
        r->elements += r->negative ? 0 : r->answer_number;
        end_element(t);
        break;
    case '%':
        r->elements += 2 * r->answer_number;
        end_element(t);
        break;
    case '|':
        /* Attributes precede the value that they describe. */
        r->elements += 2 * r->answer_number;
        r->answer_state = KIND;
        break;
    default:
        if (r->negative) {
            end_element(t);
        } else {
            r->answer_left = r->answer_number + 2;
            r->answer_state = ANSWER_TEXT;
        }
        break;
    }
}

static void take_received(tap *t, char c) {
    tap_redis *r = &t->redis;
    switch (r->answer_state) {
    case KIND:
        begin_element(t, c);
        break;
    case ANSWER_NUMBER:
        if (c == '-') {
            r->negative = true;
        } else if (c == '?') {
            t->opaque = true; /* of unknown length, with an end marker; no server sends that */
        } else if (take_digit(t, &r->answer_number, c)) {
            end_number(t);
        }
        break;
    default:
        if (c == '\n') {
            end_element(t);
        }
        break;
    }
}

void redis_received(tap *t, const char *data, size_t length) {
    tap_redis *r = &t->redis;
    while (length > 0 && !t->opaque) {
        size_t part = 1;
        if (r->answer_state == ANSWER_TEXT) {
            part = length < r->answer_left ? length : (size_t)r->answer_left;
            r->answer_left -= part;
            if (r->answer_left == 0) {
                end_element(t);
            }
        } else {
            take_received(t, *data);
        }
        data += part;
        length -= part;
    }
}

bool redis_idle(const tap *t) {
    const tap_redis *r = &t->redis;
    return r->waiting == 0 && r->state == BEGIN && r->answer_state == KIND && r->elements == 0;
}

/* --- resetting --- */

static bool send_command(tap *t, const char *command) {
    return tap_exchange(t, command, strlen(command), redis_idle);
}

static bool select_database(tap *t) {
    char number[16], command[64];
    int length = snprintf(number, sizeof number, "%u", t->redis.database);
    snprintf(command, sizeof command, "*2\r\n$6\r\nSELECT\r\n$%d\r\n%s\r\n", length, number);
    return send_command(t, command);
}

const char *redis_boot(tap *t) {
    tap_redis *r = &t->redis;
    if (r->collecting || r->watching) {
        return "a transaction is open on it; end it first";
    }
    r->selected = false;
    return NULL;
}

/* The function that opens the connection repeats what it set up. */
bool redis_renew(tap *t) {
    bool renewed = !t->redis.set_up && select_database(t);
    t->redis.selected = false;
    return renewed;
}

const char *redis_settle(tap *t) {
    const tap_redis *r = &t->redis;
    if (!r->collecting && !r->watching && !r->selected) {
        return NULL;
    }
    const bool collecting = r->collecting, selected = r->selected;
    if (collecting && !send_command(t, "*1\r\n$7\r\nDISCARD\r\n")) {
        return "a transaction that cannot be discarded";
    }
    if (r->watching && !send_command(t, "*1\r\n$7\r\nUNWATCH\r\n")) {
        return "watched keys";
    }
    if (selected && !select_database(t)) {
        return "another database";
    }
    shim_snapshot_count_reset();
    if (collecting) {
        shim_snapshot_advise(TAP_ADVICE_TRANSACTION, NULL);
    }
    return NULL;
}
