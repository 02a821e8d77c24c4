/* Statistics of connection pools, for `howdah status` and the metrics. Each is a property of its pool's Connections
 * object. In each turn, the scheduler sums up the pools of each name here and writes the sums into the page of the
 * lane where the server finds them. When a pool is destroyed, its counters stay in the sums of its name. */
#include "async/pools/numbers.h"

#include "shim.h"
#include "async/pools/pools.h"

/* Numbers before this one are gauges, the others are counters. */
#define FIRST_COUNTER POOL_ACQUIRED

/* A name and the sums of the counters of former pools with that name. */
typedef struct name_slot {
    char name[POOL_NAME_LEN];
    size_t length;
    unsigned pools;
    uint64_t past[POOL_NUMBERS];
} name_slot;

static name_slot slots[POOL_SLOTS];
static unsigned slots_used;
static connection_pool *first_pool;

/* Seconds are reported in nanoseconds. */
static uint64_t value_of(connection_pool *self, pool_number which) {
    const zval *value = pool_number_of(self, which);
    switch (Z_TYPE_P(value)) {
    case IS_LONG:
        return Z_LVAL_P(value) > 0 ? (uint64_t)Z_LVAL_P(value) : 0;
    case IS_DOUBLE:
        return Z_DVAL_P(value) > 0 && Z_DVAL_P(value) < 1e9 ? (uint64_t)(Z_DVAL_P(value) * 1e9) : 0;
    default:
        return 0;
    }
}

static void add_numbers(uint64_t *sums, connection_pool *self, pool_number from) {
    for (pool_number i = from; i < POOL_NUMBERS; i++) {
        uint64_t value = value_of(self, i);
        sums[i] = i == POOL_WAIT_MAX ? MAX(sums[i], value) : sums[i] + value;
    }
}

void async_pools_publish(void) {
    if (slots_used == 0 || shim.script_child) {
        return;
    }
    uint64_t sums[POOL_SLOTS][POOL_NUMBERS];
    for (unsigned i = 0; i < slots_used; i++) {
        memcpy(sums[i], slots[i].past, sizeof sums[i]);
    }
    for (connection_pool *pool = first_pool; pool != NULL; pool = pool->next) {
        add_numbers(sums[pool->slot], pool, 0);
    }
    for (unsigned i = 0; i < slots_used; i++) {
        howdah_rs_pool_numbers(i, sums[i]);
    }
}

static int find_slot(const char *name, size_t length) {
    length = MIN(length, POOL_NAME_LEN);
    for (unsigned i = 0; i < slots_used; i++) {
        if (slots[i].length == length && memcmp(slots[i].name, name, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int take_slot(const zend_string *name) {
    int found = find_slot(ZSTR_VAL(name), ZSTR_LEN(name));
    if (found < 0 && slots_used < POOL_SLOTS && ZSTR_LEN(name) > 0) {
        found = (int)slots_used++;
        slots[found].length = MIN(ZSTR_LEN(name), POOL_NAME_LEN);
        memcpy(slots[found].name, ZSTR_VAL(name), slots[found].length);
        howdah_rs_pool_name((unsigned)found, slots[found].name, slots[found].length);
    }
    return found;
}

void async_pool_numbers_add(connection_pool *self, const zend_string *name) {
    self->slot = shim.script_child ? -1 : take_slot(name);
    if (self->slot < 0) {
        return;
    }
    slots[self->slot].pools++;
    self->next = first_pool;
    if (first_pool != NULL) {
        first_pool->previous = self;
    }
    first_pool = self;
}

/* Called when the pool and its connections are gone. */
void async_pool_numbers_remove(connection_pool *self) {
    if (self->slot < 0) {
        return;
    }
    uint64_t *past = slots[self->slot].past;
    add_numbers(past, self, FIRST_COUNTER);
    past[POOL_WAIT_MAX] = MAX(past[POOL_WAIT_MAX], value_of(self, POOL_WAIT_MAX));
    past[POOL_CLOSED] += value_of(self, POOL_OPENED) - value_of(self, POOL_CLOSED);
    slots[self->slot].pools--;
    if (self->previous != NULL) {
        self->previous->next = self->next;
    } else {
        first_pool = self->next;
    }
    if (self->next != NULL) {
        self->next->previous = self->previous;
    }
    self->slot = -1;
}

zend_string *async_pool_free_name(zend_string *kind) {
    int slot = find_slot(ZSTR_VAL(kind), ZSTR_LEN(kind));
    if (slot < 0 || slots[slot].pools == 0) {
        return zend_string_copy(kind);
    }
    for (unsigned i = 2;; i++) {
        /* Limits the kind, so that the number is never cut off. */
        zend_string *numbered = zend_strpprintf(0, "%.*s-%u", POOL_NAME_LEN - 11, ZSTR_VAL(kind), i);
        slot = find_slot(ZSTR_VAL(numbered), ZSTR_LEN(numbered));
        if (slot < 0 || slots[slot].pools == 0) {
            return numbered;
        }
        zend_string_release(numbered);
    }
}
