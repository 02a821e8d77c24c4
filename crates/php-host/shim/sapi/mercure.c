/* mercure_publish(), compatible with FrankenPHP's: an order to the hub of the request's site. The id is generated here
 * because orders have no response; for the same reason this file refuses what the hub would refuse. */
#include "sapi/mercure.h"

#include "shim.h"
#include "sapi/input.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define MAX_DATA (1 << 20)
#define MAX_NAME 4096
#define MAX_TOPICS 100
#define ID_LENGTH 45

/* True if the site has a hub. The server sets a variable for that, which no client can set. */
static bool has_hub(void) {
    return shim.request != NULL && !shim.script_child && shim_sapi_getenv(ZEND_STRL("HOWDAH_MERCURE")) != NULL;
}

/* A UUID (version 4) as a URN. */
static bool new_id(char *id) {
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return false;
    }
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    char *end = id + (snprintf)(id, ID_LENGTH + 1, "urn:uuid:");
    for (size_t i = 0; i < sizeof bytes; i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        end += (snprintf)(end, 4, "%s%02x", dash, bytes[i]);
    }
    return true;
}

/* Refuses names with line breaks, which would end the event's line. */
static bool is_name(const zend_string *name, uint32_t argument) {
    if (ZSTR_LEN(name) > MAX_NAME) {
        zend_argument_value_error(argument, "must be at most %d bytes long", MAX_NAME);
        return false;
    }
    for (size_t i = 0; i < ZSTR_LEN(name); i++) {
        unsigned char byte = (unsigned char)ZSTR_VAL(name)[i];
        if (byte < ' ' || byte == 0x7f) {
            zend_argument_value_error(argument, "must not contain control characters");
            return false;
        }
    }
    return true;
}

bool mercure_is_id(const zend_string *id, uint32_t argument) {
    if (!is_name(id, argument)) {
        return false;
    }
    if (ZSTR_VAL(id)[0] == '#' || zend_string_equals_literal(id, "earliest")) {
        zend_argument_value_error(argument, "must not begin with # or be \"earliest\"");
        return false;
    }
    return true;
}

static bool is_topic(const zval *topic) {
    if (Z_TYPE_P(topic) != IS_STRING) {
        zend_argument_type_error(1, "must be a string or an array of strings");
        return false;
    }
    if (Z_STRLEN_P(topic) == 0) {
        zend_argument_value_error(1, "must not contain an empty topic");
        return false;
    }
    return is_name(Z_STR_P(topic), 1);
}

static bool are_topics(const zend_string *topic, const HashTable *topics) {
    if (topics == NULL) {
        zval value;
        ZVAL_STR(&value, (zend_string *)topic);
        return is_topic(&value);
    }
    uint32_t count = zend_hash_num_elements(topics);
    if (count == 0 || count > MAX_TOPICS) {
        zend_argument_value_error(1, "must have 1 to %d topics", MAX_TOPICS);
        return false;
    }
    zval *value;
    ZEND_HASH_FOREACH_VAL((HashTable *)topics, value) {
        ZVAL_DEREF(value);
        if (!is_topic(value)) {
            return false;
        }
    }
    ZEND_HASH_FOREACH_END();
    return true;
}

/* The limits above keep an order below the maximum size, except for many long topics. */
static bool field(howdah_live_field name, const char *value, size_t length) {
    if (howdah_rs_live_field(name, value, length)) {
        return true;
    }
    zend_argument_value_error(1, "must be shorter in total");
    return false;
}

static bool text(howdah_live_field name, const zend_string *value) {
    return field(name, ZSTR_VAL(value), ZSTR_LEN(value));
}

static bool add_topics(const zend_string *topic, const HashTable *topics) {
    if (topics == NULL) {
        return text(HOWDAH_LIVE_FIELD_TOPIC, topic);
    }
    zval *value;
    ZEND_HASH_FOREACH_VAL((HashTable *)topics, value) {
        ZVAL_DEREF(value);
        if (!text(HOWDAH_LIVE_FIELD_TOPIC, Z_STR_P(value))) {
            return false;
        }
    }
    ZEND_HASH_FOREACH_END();
    return true;
}

PHP_FUNCTION(mercure_publish) {
    HashTable *topics = NULL;
    zend_string *topic = NULL, *data = zend_empty_string, *id = NULL, *type = NULL;
    bool private = false, no_retry = true;
    zend_long retry = 0;
    ZEND_PARSE_PARAMETERS_START(1, 6)
    Z_PARAM_ARRAY_HT_OR_STR(topics, topic)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR(data)
    Z_PARAM_BOOL(private)
    Z_PARAM_STR_OR_NULL(id)
    Z_PARAM_STR_OR_NULL(type)
    Z_PARAM_LONG_OR_NULL(retry, no_retry)
    ZEND_PARSE_PARAMETERS_END();
    if (!has_hub()) {
        zend_throw_exception(spl_ce_RuntimeException, "No Mercure hub configured", 0);
        RETURN_THROWS();
    }
    if (!are_topics(topic, topics) || (id != NULL && !mercure_is_id(id, 4)) || (type != NULL && !is_name(type, 5))) {
        RETURN_THROWS();
    }
    if (ZSTR_LEN(data) > MAX_DATA) {
        zend_argument_value_error(2, "must be at most 1 MiB long");
        RETURN_THROWS();
    }
    char made[ID_LENGTH + 1];
    if ((id == NULL || ZSTR_LEN(id) == 0) && !new_id(made)) {
        zend_throw_exception(spl_ce_RuntimeException, "Publish failed", 0);
        RETURN_THROWS();
    }
    bool is_made = id == NULL || ZSTR_LEN(id) == 0;
    char milliseconds[24];
    int digits = (snprintf)(milliseconds, sizeof milliseconds, "%lld", (long long)retry);
    howdah_rs_live_begin(HOWDAH_LIVE_KIND_UPDATE);
    if (!add_topics(topic, topics) || !text(HOWDAH_LIVE_FIELD_DATA, data) ||
        !(is_made ? field(HOWDAH_LIVE_FIELD_ID, made, ID_LENGTH) : text(HOWDAH_LIVE_FIELD_ID, id)) ||
        (type != NULL && !text(HOWDAH_LIVE_FIELD_TYPE, type)) ||
        (!no_retry && retry > 0 && !field(HOWDAH_LIVE_FIELD_RETRY, milliseconds, (size_t)digits)) ||
        (private && !field(HOWDAH_LIVE_FIELD_PRIVATE, "", 0))) {
        RETURN_THROWS();
    }
    howdah_rs_live_send();
    if (is_made) {
        RETURN_STRINGL(made, ID_LENGTH);
    }
    RETURN_STR_COPY(id);
}
