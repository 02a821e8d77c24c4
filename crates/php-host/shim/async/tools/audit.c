/* For development: finds state that one request leaves for the next. With the ini setting howdah.audit=1, the static
 * properties of all classes and the static variables of all functions and methods are fingerprinted before and after
 * each request that ran alone, and differences are logged by name. This is slow. Overlapping requests are not checked,
 * because a change could come from any of them. It also logs waiting calls that can only block, and places between
 * which the process stood still or computed for long. */
#include "async/tools/audit.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/timers.h"
#include "async/tools/stacks.h"
#include "sapi/input.h"
#include "sapi/log.h"

#include <stdio.h>
#include <sys/resource.h>
#include <syslog.h>
#include <time.h>

/* Deeper structures are compared by identity. */
#define DEPTH 4

/* Nanoseconds that a coroutine may hold the process without being reported. */
#define HELD UINT64_C(20000000)

static bool enabled;
/* Name of a static → fingerprint when it was last compared. */
static HashTable seen;
static bool has_seen;
/* Places that were already reported. */
static HashTable blocking;

/* The thread's processor time when the running coroutine began to run, and that coroutine's position. */
typedef struct usage {
    uint64_t clock, processor;
    /* Number of times that the thread gave up the processor to wait. */
    long waits;
} usage;
static usage turn;
static zend_string *turn_began;
/* Processor time of the audit itself in this turn. */
static uint64_t own_time;

static uint64_t hash_combine(uint64_t hash, uint64_t value) {
    return (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15) + (hash >> 29);
}

static uint64_t fingerprint(const zval *value, int depth) {
    ZVAL_DEREF(value);
    uint64_t hash = hash_combine(1, Z_TYPE_P(value));
    switch (Z_TYPE_P(value)) {
    case IS_LONG:
        return hash_combine(hash, (uint64_t)Z_LVAL_P(value));
    case IS_DOUBLE: {
        uint64_t bits;
        memcpy(&bits, &Z_DVAL_P(value), sizeof bits);
        return hash_combine(hash, bits);
    }
    case IS_STRING:
        return hash_combine(hash, zend_string_hash_val(Z_STR_P(value)));
    case IS_ARRAY:
    case IS_OBJECT: {
        HashTable *table = Z_TYPE_P(value) == IS_ARRAY ? Z_ARRVAL_P(value) : Z_OBJ_P(value)->properties;
        if (Z_TYPE_P(value) == IS_OBJECT) {
            hash = hash_combine(hash, Z_OBJ_HANDLE_P(value));
            zend_object *object = Z_OBJ_P(value);
            for (int i = 0; depth > 0 && i < object->ce->default_properties_count; i++) {
                hash = hash_combine(hash, fingerprint(&object->properties_table[i], depth - 1));
            }
        }
        if (depth == 0 || table == NULL) {
            return hash_combine(hash, table != NULL ? zend_hash_num_elements(table) : 0);
        }
        zend_ulong index;
        zend_string *key;
        zval *element;
        ZEND_HASH_FOREACH_KEY_VAL(table, index, key, element) {
            hash = hash_combine(hash, key != NULL ? zend_string_hash_val(key) : index);
            hash = hash_combine(hash, Z_TYPE_P(element) == IS_INDIRECT ? 0 : fingerprint(element, depth - 1));
        }
        ZEND_HASH_FOREACH_END();
        return hash;
    }
    case IS_RESOURCE:
        return hash_combine(hash, (uint64_t)Z_RES_HANDLE_P(value));
    default:
        return hash;
    }
}

/* Records a static; logs it if it has changed. */
static void check_static(const char *scope, const char *separator, const char *name, const zval *value, bool report) {
    char text[256];
    int length = (snprintf)(text, sizeof text, "%s%s$%s", scope, separator, name);
    if (length < 0 || (size_t)length >= sizeof text) {
        return;
    }
    zval now;
    ZVAL_LONG(&now, (zend_long)fingerprint(value, DEPTH));
    const zval *before = zend_hash_str_find(&seen, text, (size_t)length);
    if (report && before != NULL && Z_LVAL_P(before) != Z_LVAL(now)) {
        shim_log(LOG_WARNING, "audit: %s changed by %s %s", text,
                 SG(request_info).request_method != NULL ? SG(request_info).request_method : "-",
                 shim.request != NULL ? shim_text(shim.request->uri) : "-");
    }
    zend_hash_str_update(&seen, text, (size_t)length, &now);
}

static void check_function(const zend_function *function, const char *scope, bool report) {
    if (function->type != ZEND_USER_FUNCTION) {
        return;
    }
    HashTable *statics = ZEND_MAP_PTR_GET(function->op_array.static_variables_ptr);
    if (statics == NULL) {
        /* Not called yet. */
        statics = function->op_array.static_variables;
    }
    if (statics == NULL || function->common.function_name == NULL) {
        return;
    }
    char name[200];
    (snprintf)(name, sizeof name, "%s%s%s()", scope != NULL ? scope : "", scope != NULL ? "::" : "",
               ZSTR_VAL(function->common.function_name));
    zend_string *variable;
    zval *value;
    ZEND_HASH_FOREACH_STR_KEY_VAL(statics, variable, value) {
        check_static(name, " static ", ZSTR_VAL(variable), value, report);
    }
    ZEND_HASH_FOREACH_END();
}

static void check_class(zend_class_entry *class_type, bool report) {
    if (class_type->type != ZEND_USER_CLASS) {
        return;
    }
    const zend_function *method;
    ZEND_HASH_FOREACH_PTR(&class_type->function_table, method) {
        if (method->common.scope == class_type) {
            check_function(method, ZSTR_VAL(class_type->name), report);
        }
    }
    ZEND_HASH_FOREACH_END();
    if (class_type->default_static_members_count == 0) {
        return;
    }
    const zval *members = CE_STATIC_MEMBERS(class_type);
    if (members == NULL) {
        /* Not used yet. */
        members = class_type->default_static_members_table;
    }
    const zend_property_info *property;
    ZEND_HASH_FOREACH_PTR(&class_type->properties_info, property) {
        if ((property->flags & ZEND_ACC_STATIC) != 0 && property->ce == class_type) {
            const char *class_name, *name;
            zend_unmangle_property_name(property->name, &class_name, &name);
            check_static(ZSTR_VAL(class_type->name), "::", name, members + property->offset, report);
        }
    }
    ZEND_HASH_FOREACH_END();
}

static uint64_t processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static usage usage_now(void) {
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return (usage){.clock = async_now(), .processor = processor_time(), .waits = used.ru_nvcsw};
}

static void check_all(bool report) {
    uint64_t began = processor_time();
    zend_class_entry *class_type;
    ZEND_HASH_FOREACH_PTR(EG(class_table), class_type) {
        check_class(class_type, report);
    }
    ZEND_HASH_FOREACH_END();
    const zend_function *function;
    ZEND_HASH_FOREACH_PTR(EG(function_table), function) {
        check_function(function, NULL, report);
    }
    ZEND_HASH_FOREACH_END();
    own_time += processor_time() - began;
}

void async_audit_startup(void) {
    enabled = zend_ini_long(ZEND_STRL("howdah.audit"), 0) != 0;
    if (enabled) {
        zend_hash_init(&seen, 256, NULL, NULL, 1);
        zend_hash_init(&blocking, 16, NULL, NULL, 1);
        shim_log(LOG_WARNING, "audit: static state is compared after each request; not for production");
    }
}

void async_audit_begin(bool alone) {
    if (enabled) {
        has_seen = alone;
        if (has_seen) {
            check_all(false);
        }
    }
}

void async_audit_overlap(void) {
    has_seen = false;
}

void async_audit_end(void) {
    if (enabled && has_seen) {
        check_all(true);
    }
}

/* True if this has not been reported for this place yet. */
static bool is_new(const char *what, const char *place) {
    char key[512];
    int length = (snprintf)(key, sizeof key, "%s %s", what, place);
    return length > 0 && zend_hash_str_add_empty_element(&blocking, key, MIN((size_t)length, sizeof key - 1)) != NULL;
}

/* Reports a call that blocks the process, once for each file and line of the innermost PHP frame. */
void async_audit_blocked(void) {
    if (!enabled || coroutine_current == NULL) {
        return;
    }
    char place[PATH_MAX + 16];
    (snprintf)(place, sizeof place, "%s:%u", zend_get_executed_filename(), zend_get_executed_lineno());
    if (is_new("blocked", place)) {
        shim_log(
            LOG_NOTICE,
            "audit: a call may block the process, as nothing can wait here (autoloader, compiler or collector): %s",
            place);
    }
}

void async_audit_turn_begin(const coroutine *self) {
    if (enabled) {
        turn_began = async_place_of(self);
        own_time = 0;
        turn = usage_now();
    }
}

/* Between two waits of a coroutine, no other one runs. A coroutine that only waited for the processor is not
 * reported. */
void async_audit_turn_end(const coroutine *self) {
    if (!enabled || turn_began == NULL) {
        return;
    }
    usage now = usage_now();
    uint64_t held = now.clock - turn.clock, computed = now.processor - turn.processor;
    uint64_t still = held > computed ? held - computed : 0;
    computed = computed > own_time ? computed - own_time : 0;
    const char *what = now.waits > turn.waits && still >= HELD ? "stood still" : computed >= HELD ? "computed" : NULL;
    if (what != NULL) {
        zend_string *place = self->state == COROUTINE_ENDED ? NULL : async_place_of(self);
        const char *until = place != NULL ? ZSTR_VAL(place) : "the coroutine's end";
        if (is_new(what, until)) {
            shim_log(LOG_NOTICE,
                     "audit: the process %s for %llu ms, in which no other coroutine ran, between %s and %s", what,
                     (unsigned long long)((what[0] == 's' ? still : computed) / 1000000), ZSTR_VAL(turn_began), until);
        }
        if (place != NULL) {
            zend_string_release(place);
        }
    }
    zend_string_release(turn_began);
    turn_began = NULL;
}
