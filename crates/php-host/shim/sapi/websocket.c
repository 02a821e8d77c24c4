/* Howdah\WebSocket and Howdah\WebSocketEvent: events of connections that the server holds, orders to the server, and
 * questions. An event is a request with the variables below; its body is the message. No client can set them, because
 * variables of a client's headers begin with HTTP_. */
#include "sapi/websocket.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/questions.h"
#include "sapi/descriptor_text.h"
#include "sapi/input.h"
#include "sapi/mercure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGE (1 << 20)
/* Maximum number of messages that may wait for a client that drops the oldest. */
#define MAX_KEPT 65536
#define MAX_STATE 4096

static zend_class_entry *event_class;

/* --- orders --- */

static bool order_begin(howdah_live_kind kind) {
    if (shim.request == NULL || shim.script_child) {
        zend_throw_error(NULL, "There is no request whose site has connections or channels");
        return false;
    }
    howdah_rs_live_begin(kind);
    return true;
}

/* The callers have limited the other arguments. Only a name, or the id after which a subscription begins, can be too
 * long here; its order is not sent. */
static bool order_field(howdah_live_field name, const char *value, size_t length) {
    if (howdah_rs_live_field(name, value, length)) {
        return true;
    }
    zend_value_error("The name is too long");
    return false;
}

static bool order_text(howdah_live_field name, const zend_string *value) {
    return order_field(name, ZSTR_VAL(value), ZSTR_LEN(value));
}

static bool order_optional(howdah_live_field name, const zend_string *value) {
    return value == NULL || order_text(name, value);
}

static void order_message(howdah_live_kind kind, howdah_live_field to_field, const zend_string *to,
                          const zend_string *data, bool binary, const zend_string *id, uint32_t argument) {
    if (ZSTR_LEN(data) > MAX_MESSAGE) {
        zend_argument_value_error(argument, "must be at most 1 MiB long");
        return;
    }
    if (order_begin(kind) && order_text(to_field, to) && order_text(HOWDAH_LIVE_FIELD_DATA, data) &&
        (!binary || order_field(HOWDAH_LIVE_FIELD_BINARY, "", 0)) && order_optional(HOWDAH_LIVE_FIELD_ID, id)) {
        howdah_rs_live_send();
    }
}

bool websocket_close_is_valid(zend_long code, const zend_string *reason, uint32_t argument) {
    if (code != 1000 && (code < 3000 || code > 4999)) {
        zend_argument_value_error(argument, "must be 1000 or from 3000 to 4999");
        return false;
    }
    if (ZSTR_LEN(reason) > WEBSOCKET_MAX_REASON) {
        zend_argument_value_error(argument + 1, "must be at most %d bytes long", WEBSOCKET_MAX_REASON);
        return false;
    }
    return true;
}

static void order_close(const zend_string *connection, zend_long code, const zend_string *reason, uint32_t argument) {
    if (!websocket_close_is_valid(code, reason, argument)) {
        return;
    }
    char digits[8];
    int length = snprintf(digits, sizeof digits, "%d", (int)code);
    if (order_begin(HOWDAH_LIVE_KIND_CLOSE) && order_text(HOWDAH_LIVE_FIELD_CONNECTION, connection) &&
        order_field(HOWDAH_LIVE_FIELD_CODE, digits, (size_t)length) && order_text(HOWDAH_LIVE_FIELD_DATA, reason)) {
        howdah_rs_live_send();
    }
}

static void order_unsubscribe(const zend_string *connection, const zend_string *channel) {
    if (order_begin(HOWDAH_LIVE_KIND_UNSUBSCRIBE) && order_text(HOWDAH_LIVE_FIELD_CONNECTION, connection) &&
        order_text(HOWDAH_LIVE_FIELD_TOPIC, channel)) {
        howdah_rs_live_send();
    }
}

/* Without `keeps`, a client that is too slow loses its connection. */
static void order_subscribe(const zend_string *connection, const zend_string *channel, const zend_string *after,
                            zend_long keep, bool keeps, uint32_t argument) {
    if (keeps && (keep < 1 || keep > MAX_KEPT)) {
        zend_argument_value_error(argument, "must be from 1 to %d", MAX_KEPT);
        return;
    }
    char digits[8];
    int length = snprintf(digits, sizeof digits, "%d", keeps ? (int)keep : 0);
    if (order_begin(HOWDAH_LIVE_KIND_SUBSCRIBE) && order_text(HOWDAH_LIVE_FIELD_CONNECTION, connection) &&
        order_text(HOWDAH_LIVE_FIELD_TOPIC, channel) && order_optional(HOWDAH_LIVE_FIELD_AFTER, after) &&
        (!keeps || order_field(HOWDAH_LIVE_FIELD_KEEP, digits, (size_t)length))) {
        howdah_rs_live_send();
    }
}

/* --- questions --- */

/* Asks a question and waits for the answer; NULL: an empty one. `about` may be NULL. In async mode other coroutines run
 * meanwhile, unless the caller's code cannot wait. False with an exception: there is no answer. */
static bool ask(howdah_live_kind kind, howdah_live_field field, const zend_string *about, zend_string **answer) {
    bool parks = coroutine_may_wait();
    if ((parks && !async_question_turn()) || !order_begin(kind) || (about != NULL && !order_text(field, about))) {
        return false;
    }
    int file = parks ? async_question_ask() : howdah_rs_live_ask();
    if (file < 0) {
        if (EG(exception) == NULL) {
            zend_throw_error(NULL, "The server does not answer");
        }
        return false;
    }
    *answer = shim_read_text(file);
    return true;
}

/* The number in an answer, which is freed; 0 if the answer is empty. */
static zend_long take_number(zend_string *answer) {
    if (answer == NULL) {
        return 0;
    }
    const zend_long number = ZEND_STRTOL(ZSTR_VAL(answer), NULL, 10);
    zend_string_release(answer);
    return number;
}

/* The next text of an answer, preceded by its length. False at the end. */
static bool next_text(const char **at, const char *end, const char **text, uint32_t *length) {
    if ((size_t)(end - *at) < sizeof *length) {
        return false;
    }
    memcpy(length, *at, sizeof *length);
    *text = *at + sizeof *length;
    if ((size_t)(end - *text) < *length) {
        return false;
    }
    *at = *text + *length;
    return true;
}

PHP_METHOD(Howdah_WebSocket, exists) {
    zend_string *connection, *answer;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(connection)
    ZEND_PARSE_PARAMETERS_END();
    if (!ask(HOWDAH_LIVE_KIND_EXISTS, HOWDAH_LIVE_FIELD_CONNECTION, connection, &answer)) {
        RETURN_THROWS();
    }
    RETVAL_BOOL(take_number(answer) != 0);
}

PHP_METHOD(Howdah_WebSocket, count) {
    zend_string *channel = NULL, *answer;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR_OR_NULL(channel)
    ZEND_PARSE_PARAMETERS_END();
    if (!ask(HOWDAH_LIVE_KIND_COUNT, HOWDAH_LIVE_FIELD_TOPIC, channel, &answer)) {
        RETURN_THROWS();
    }
    RETVAL_LONG(take_number(answer));
}

PHP_METHOD(Howdah_WebSocket, connections) {
    zend_string *channel = NULL, *answer;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR_OR_NULL(channel)
    ZEND_PARSE_PARAMETERS_END();
    if (!ask(HOWDAH_LIVE_KIND_CONNECTIONS, HOWDAH_LIVE_FIELD_TOPIC, channel, &answer)) {
        RETURN_THROWS();
    }
    array_init(return_value);
    if (answer == NULL) {
        return;
    }
    const char *at = ZSTR_VAL(answer), *end = at + ZSTR_LEN(answer), *id, *state;
    uint32_t id_length, state_length;
    while (next_text(&at, end, &id, &id_length) && next_text(&at, end, &state, &state_length)) {
        zval value;
        ZVAL_STRINGL(&value, state, state_length);
        zend_hash_str_update(Z_ARRVAL_P(return_value), id, id_length, &value);
    }
    zend_string_release(answer);
}

/* --- events --- */

static void set_text(zend_object *event, const char *name, const char *value, size_t length) {
    zend_update_property_stringl(event_class, event, name, strlen(name), value, length);
}

static zend_string *connection_of(zval *event) {
    zval room;
    const zval *value = zend_read_property(event_class, Z_OBJ_P(event), ZEND_STRL("connection"), true, &room);
    return Z_TYPE_P(value) == IS_STRING ? Z_STR_P(value) : zend_empty_string;
}

const char *websocket_variable(const char *name, size_t *length) {
    for (uint32_t i = 0; i < shim.request->n_vars; i++) {
        const WireVar *var = &shim.vars[i];
        if (var->name_id == 0 && strcmp(shim_text(var->name), name) == 0) {
            *length = var->value.len;
            return shim_text(var->value);
        }
    }
    *length = 0;
    return NULL;
}

static zend_string *whole_body(void) {
    php_stream *input = php_stream_open_wrapper("php://input", "rb", 0, NULL);
    zend_string *body = input != NULL ? php_stream_copy_to_mem(input, PHP_STREAM_COPY_ALL, 0) : NULL;
    if (input != NULL) {
        php_stream_close(input);
    }
    return body != NULL ? body : ZSTR_EMPTY_ALLOC();
}

PHP_METHOD(Howdah_WebSocket, event) {
    ZEND_PARSE_PARAMETERS_NONE();
    size_t length, id_length, state_length, code_length;
    const char *type = shim.request != NULL ? websocket_variable("HOWDAH_WEBSOCKET_EVENT", &length) : NULL;
    if (type == NULL) {
        RETURN_NULL();
    }
    const char *id = websocket_variable("HOWDAH_WEBSOCKET_ID", &id_length);
    const char *state = websocket_variable("HOWDAH_WEBSOCKET_STATE", &state_length);
    const char *code = websocket_variable("HOWDAH_WEBSOCKET_CODE", &code_length);
    bool binary = websocket_variable("HOWDAH_WEBSOCKET_BINARY", &code_length) != NULL;
    zend_string *data = whole_body();
    object_init_ex(return_value, event_class);
    zend_object *event = Z_OBJ_P(return_value);
    set_text(event, "type", type, length);
    set_text(event, "connection", id != NULL ? id : "", id_length);
    set_text(event, "data", ZSTR_VAL(data), ZSTR_LEN(data));
    set_text(event, "state", state != NULL ? state : "", state_length);
    zend_update_property_bool(event_class, event, ZEND_STRL("binary"), binary);
    zend_update_property_long(event_class, event, ZEND_STRL("code"), code != NULL ? atol(code) : 0);
    zend_string_release(data);
}

PHP_METHOD(Howdah_WebSocket, send) {
    zend_string *connection, *data;
    bool binary = false;
    ZEND_PARSE_PARAMETERS_START(2, 3)
    Z_PARAM_STR(connection)
    Z_PARAM_STR(data)
    Z_PARAM_OPTIONAL
    Z_PARAM_BOOL(binary)
    ZEND_PARSE_PARAMETERS_END();
    order_message(HOWDAH_LIVE_KIND_SEND, HOWDAH_LIVE_FIELD_CONNECTION, connection, data, binary, NULL, 2);
}

PHP_METHOD(Howdah_WebSocket, close) {
    zend_string *connection, *reason = zend_empty_string;
    zend_long code = 1000;
    ZEND_PARSE_PARAMETERS_START(1, 3)
    Z_PARAM_STR(connection)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(code)
    Z_PARAM_STR(reason)
    ZEND_PARSE_PARAMETERS_END();
    order_close(connection, code, reason, 2);
}

PHP_METHOD(Howdah_WebSocket, subscribe) {
    zend_string *connection, *channel, *after = NULL;
    zend_long keep = 0;
    bool is_null = true;
    ZEND_PARSE_PARAMETERS_START(2, 4)
    Z_PARAM_STR(connection)
    Z_PARAM_STR(channel)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR_OR_NULL(after)
    Z_PARAM_LONG_OR_NULL(keep, is_null)
    ZEND_PARSE_PARAMETERS_END();
    order_subscribe(connection, channel, after, keep, !is_null, 4);
}

PHP_METHOD(Howdah_WebSocket, unsubscribe) {
    zend_string *connection, *channel;
    ZEND_PARSE_PARAMETERS_START(2, 2)
    Z_PARAM_STR(connection)
    Z_PARAM_STR(channel)
    ZEND_PARSE_PARAMETERS_END();
    order_unsubscribe(connection, channel);
}

PHP_METHOD(Howdah_WebSocketEvent, send) {
    zend_string *data;
    bool binary = false;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_STR(data)
    Z_PARAM_OPTIONAL
    Z_PARAM_BOOL(binary)
    ZEND_PARSE_PARAMETERS_END();
    order_message(HOWDAH_LIVE_KIND_SEND, HOWDAH_LIVE_FIELD_CONNECTION, connection_of(ZEND_THIS), data, binary, NULL, 1);
}

PHP_METHOD(Howdah_WebSocketEvent, close) {
    zend_string *reason = zend_empty_string;
    zend_long code = 1000;
    ZEND_PARSE_PARAMETERS_START(0, 2)
    Z_PARAM_OPTIONAL
    Z_PARAM_LONG(code)
    Z_PARAM_STR(reason)
    ZEND_PARSE_PARAMETERS_END();
    order_close(connection_of(ZEND_THIS), code, reason, 1);
}

PHP_METHOD(Howdah_WebSocketEvent, subscribe) {
    zend_string *channel, *after = NULL;
    zend_long keep = 0;
    bool is_null = true;
    ZEND_PARSE_PARAMETERS_START(1, 3)
    Z_PARAM_STR(channel)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR_OR_NULL(after)
    Z_PARAM_LONG_OR_NULL(keep, is_null)
    ZEND_PARSE_PARAMETERS_END();
    order_subscribe(connection_of(ZEND_THIS), channel, after, keep, !is_null, 3);
}

PHP_METHOD(Howdah_WebSocketEvent, unsubscribe) {
    zend_string *channel;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(channel)
    ZEND_PARSE_PARAMETERS_END();
    order_unsubscribe(connection_of(ZEND_THIS), channel);
}

PHP_METHOD(Howdah_WebSocketEvent, setState) {
    zend_string *state;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_STR(state)
    ZEND_PARSE_PARAMETERS_END();
    if (ZSTR_LEN(state) > MAX_STATE) {
        zend_argument_value_error(1, "must be at most %d bytes long", MAX_STATE);
        RETURN_THROWS();
    }
    if (order_begin(HOWDAH_LIVE_KIND_STATE) && order_text(HOWDAH_LIVE_FIELD_CONNECTION, connection_of(ZEND_THIS)) &&
        order_text(HOWDAH_LIVE_FIELD_DATA, state)) {
        howdah_rs_live_send();
        zend_update_property_str(event_class, Z_OBJ_P(ZEND_THIS), ZEND_STRL("state"), state);
    }
}

PHP_METHOD(Howdah_WebSocket, publish) {
    zend_string *channel, *data, *id = NULL;
    bool binary = false;
    ZEND_PARSE_PARAMETERS_START(2, 4)
    Z_PARAM_STR(channel)
    Z_PARAM_STR(data)
    Z_PARAM_OPTIONAL
    Z_PARAM_BOOL(binary)
    Z_PARAM_STR_OR_NULL(id)
    ZEND_PARSE_PARAMETERS_END();
    if (id != NULL && !mercure_is_id(id, 4)) {
        RETURN_THROWS();
    }
    order_message(HOWDAH_LIVE_KIND_PUBLISH, HOWDAH_LIVE_FIELD_TOPIC, channel, data, binary, id, 2);
}

void websocket_class_startup(zend_class_entry *event) {
    event_class = event;
}
