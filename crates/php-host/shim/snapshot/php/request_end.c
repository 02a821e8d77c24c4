/* The end of a request in snapshot mode: does everything with a visible effect that the end of a classic request does,
 * in PHP's order: shutdown functions, destructors, output, the modules' own ends (sessions are written), closing of
 * what the request opened. Memory is not freed: the restore discards it.
 *
 * The application's own objects and connections, made at boot, stay open. Their destructors run, as they would at the
 * end of a classic request; destroying the objects would close connections that the next request finds open in its
 * memory. */
#include "snapshot/php/request_end.h"

#include "shim.h"
#include "sapi/error_page.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/tls.h"

#include <ext/standard/basic_functions.h>
#include <rfc1867.h>
#include <string.h>
#include <zend_closures.h>
#include <zend_fibers.h>
#include <zend_generators.h>
#include <zend_observer.h>

/* Objects are compared in blocks of this many: most blocks are unchanged. */
#define BLOCK 64

/* Number of free slots; requests with more objects make the table of objects grow. */
#define SPARE_OBJECTS 2048

/* The application's objects at the snapshot. In the engine's memory, as is the list of those with destructors. */
static zend_object **boot_objects;
static uint32_t boot_top;
static zend_object **boot_destructible;
static uint32_t n_boot_destructible;
static zend_long boot_resources;

typedef struct module_end {
    zend_result (*function)(void);
} module_end;
static module_end module_ends[64];
static size_t n_module_ends;

/* Modules whose end of a request has a visible effect, in PHP's order. */
#define MAX_ENDING 256
static const zend_module_entry *ending[MAX_ENDING];
static size_t n_ending;

static bool has_destructor(const zend_object *object) {
    return object->handlers->dtor_obj != zend_objects_destroy_object || object->ce->destructor != NULL;
}

/* True for modules that only free memory at the end of a request: SPL its autoloaders, closures with all they hold. The
 * restore does that anyway, and freeing would write to pages that are otherwise only read. */
static bool only_frees_memory(const zend_module_entry *module) {
    return strcmp(module->name, "SPL") == 0 || strcmp(module->name, "mbstring") == 0;
}

/* The last module that was started ends first. */
static void list_ending_modules(void) {
    const zend_module_entry *module;
    ZEND_HASH_MAP_REVERSE_FOREACH_PTR(&module_registry, module) {
        if (module->request_shutdown_func == NULL || only_frees_memory(module)) {
            continue;
        }
        if (n_ending == MAX_ENDING) {
            snapshot_spoil("PHP has too many extensions");
            return;
        }
        ending[n_ending++] = module;
    }
    ZEND_HASH_FOREACH_END();
}

static void end_modules(void) {
    if (EG(full_tables_cleanup)) {
        /* The request has loaded an extension. */
        zend_deactivate_modules();
        return;
    }
    EG(current_execute_data) = NULL;
    for (volatile size_t i = 0; i < n_ending; i++) {
        zend_try {
            ending[i]->request_shutdown_func(ending[i]->type, ending[i]->module_number);
        }
        zend_end_try();
    }
}

/* OPcache's post_deactivate releases its lock on the shared memory, which this process uses as long as it lives. */
static void list_module_ends(void) {
    zend_module_entry *module;
    ZEND_HASH_MAP_FOREACH_PTR(&module_registry, module) {
        if (module->post_deactivate_func != NULL && strcmp(module->name, "Zend OPcache") != 0 &&
            n_module_ends < sizeof module_ends / sizeof *module_ends) {
            module_ends[n_module_ends++].function = module->post_deactivate_func;
        }
    }
    ZEND_HASH_FOREACH_END();
}

void shim_snapshot_end_remember(void) {
    zend_objects_store *store = &EG(objects_store);
    /* Free slots stay free: objects of requests come after the application's, where they are found at once. */
    store->free_list_head = -1;
    if (store->size - store->top < SPARE_OBJECTS) {
        store->size += SPARE_OBJECTS;
        store->object_buckets = erealloc(store->object_buckets, store->size * sizeof(zend_object *));
    }
    boot_top = store->top;
    snapshot_loose(store->object_buckets + boot_top, (store->size - boot_top) * sizeof(zend_object *));
    boot_resources = EG(regular_list).nNextFreeElement;
    size_t size = (boot_top + 1) * sizeof(zend_object *);
    boot_objects = snapshot_engine_memory(size);
    boot_destructible = snapshot_engine_memory(size);
    if (boot_objects == NULL || boot_destructible == NULL) {
        snapshot_spoil("no memory for the list of the application's objects");
        return;
    }
    memcpy(boot_objects, store->object_buckets, boot_top * sizeof(zend_object *));
    for (uint32_t i = 1; i < boot_top; i++) {
        zend_object *object = store->object_buckets[i];
        if (IS_OBJ_VALID(object) && has_destructor(object)) {
            boot_destructible[n_boot_destructible++] = object;
        }
    }
    list_module_ends();
    list_ending_modules();
}

static bool is_boot_object(const zend_object *object) {
    return object->handle < boot_top && boot_objects[object->handle] == object;
}

bool shim_snapshot_is_boot_object(const zend_object *object) {
    return is_boot_object(object);
}

static void run_destructor(zend_object *object) {
    if (!(OBJ_FLAGS(object) & IS_OBJ_DESTRUCTOR_CALLED)) {
        GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
        GC_ADDREF(object);
        object->handlers->dtor_obj(object);
        GC_DELREF(object);
    }
}

/* As in zend_call_destructors(): global variables that hold the last reference go first, from the last to the first. */
static int destroy_symbol(zval *symbol) {
    if (Z_TYPE_P(symbol) == IS_INDIRECT) {
        symbol = Z_INDIRECT_P(symbol);
    }
    if (Z_TYPE_P(symbol) != IS_OBJECT || Z_REFCOUNT_P(symbol) != 1) {
        return ZEND_HASH_APPLY_KEEP;
    }
    zend_object *object = Z_OBJ_P(symbol);
    if (!is_boot_object(object)) {
        return ZEND_HASH_APPLY_REMOVE;
    }
    if (has_destructor(object)) {
        run_destructor(object);
    }
    return ZEND_HASH_APPLY_KEEP;
}

/* Calls `each` for those of the request's objects that have replaced an object of the application in its slot. */
static void each_object_in_boot_places(void (*each)(zend_object *object)) {
    for (uint32_t block = 0; block < boot_top; block += BLOCK) {
        const uint32_t end = block + BLOCK < boot_top ? block + BLOCK : boot_top;
        const size_t size = (end - block) * sizeof *boot_objects;
        if (memcmp(EG(objects_store).object_buckets + block, boot_objects + block, size) == 0) {
            continue;
        }
        for (uint32_t i = block; i < end; i++) {
            zend_object *object = EG(objects_store).object_buckets[i];
            if (object != boot_objects[i] && IS_OBJ_VALID(object)) {
                each(object);
            }
        }
    }
}

/* Calls `each` for the objects that the request has made, from the first to the last. It may run PHP code: the table of
 * objects can grow and move. */
static void each_new_object(void (*each)(zend_object *object)) {
    each_object_in_boot_places(each);
    for (uint32_t i = boot_top; i < EG(objects_store).top; i++) {
        zend_object *object = EG(objects_store).object_buckets[i];
        if (IS_OBJ_VALID(object)) {
            each(object);
        }
    }
}

static void destroy_new_object(zend_object *object) {
    if (has_destructor(object)) {
        run_destructor(object);
    }
}

static void call_destructors(void) {
    uint32_t symbols;
    do {
        symbols = zend_hash_num_elements(&EG(symbol_table));
        zend_hash_reverse_apply(&EG(symbol_table), destroy_symbol);
    } while (symbols != zend_hash_num_elements(&EG(symbol_table)));
    EG(flags) |= EG_FLAGS_OBJECT_STORE_NO_REUSE;
    zend_fiber_switch_block();
    for (uint32_t i = 0; i < n_boot_destructible; i++) {
        zend_object *object = boot_destructible[i];
        if (EG(objects_store).object_buckets[object->handle] == object) {
            run_destructor(object);
        }
    }
    each_new_object(destroy_new_object);
    zend_fiber_switch_unblock();
}

/* True if the object's free_obj can be skipped: it holds only memory, other objects, and streams (SplFileObject), which
 * close_resources() has closed before. */
static bool has_no_external_resources(const zend_object *object) {
    if (object->handlers->free_obj == zend_object_std_dtor || object->ce == zend_ce_closure ||
        object->ce == zend_ce_generator) {
        return true;
    }
    const zend_class_entry *class = object->ce;
    while (class->type != ZEND_INTERNAL_CLASS && class->parent != NULL) {
        class = class->parent;
    }
    const char *module = class->type == ZEND_INTERNAL_CLASS && class->info.internal.module != NULL
                             ? class->info.internal.module->name
                             : "Core";
    static const char *const harmless[] = {"Core", "SPL", "date", "standard", "Reflection", "json", "random"};
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        if (strcmp(module, harmless[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void release_new_object(zend_object *object) {
    if (!(OBJ_FLAGS(object) & IS_OBJ_FREE_CALLED) && !has_no_external_resources(object)) {
        GC_ADD_FLAGS(object, IS_OBJ_FREE_CALLED);
        GC_ADDREF(object);
        object->handlers->free_obj(object);
    }
}

/* Closes the request's streams, connections and the like, the last first. */
static void close_resources(void) {
    EG(flags) |= EG_FLAGS_IN_RESOURCE_SHUTDOWN;
    HashTable *list = &EG(regular_list);
    for (zend_long i = list->nNextFreeElement; i-- > boot_resources;) {
        zval *entry = zend_hash_index_find(list, (zend_ulong)i);
        if (entry != NULL) {
            zend_list_close(Z_RES_P(entry));
        }
    }
}

void shim_snapshot_end_outside(void) {
    zend_try {
        close_resources();
    }
    zend_end_try();
    zend_try {
        EG(active) = 0;
        each_new_object(release_new_object);
    }
    zend_end_try();
    zend_try {
        for (size_t i = 0; i < n_module_ends; i++) {
            module_ends[i].function();
        }
    }
    zend_end_try();
    if (SG(rfc1867_uploaded_files) != NULL) {
        destroy_uploaded_files_hash();
    }
}

void shim_snapshot_end_request(bool after_bailout) {
    EG(flags) |= EG_FLAGS_IN_SHUTDOWN;
    shim_compat_forget_exhausted_memory();
    EG(current_execute_data) = NULL;
    /* exit() in a worker script's handler is still pending as an exception: no PHP code could be called with it. */
    zend_clear_exception();
    if (after_bailout && ZEND_OBSERVER_ENABLED) {
        zend_observer_fcall_end_all();
    }
    zend_try {
        php_call_shutdown_functions();
    }
    zend_end_try();
    zend_try {
        shim_error_page_send();
    }
    zend_end_try();
    zend_try {
        call_destructors();
    }
    zend_catch {
        zend_objects_store_mark_destructed(&EG(objects_store));
    }
    zend_end_try();
    zend_try {
        php_output_end_all();
    }
    zend_end_try();
    zend_try {
        zend_unset_timeout();
    }
    zend_end_try();
    end_modules();
    zend_try {
        php_output_deactivate();
    }
    zend_end_try();
    shim.peak_memory = zend_memory_peak_usage(true);
    shim_snapshot_end_outside();
}

/* Encrypted streams have state in memory that both ends rely on: restoring it breaks the connection. */
const char *shim_snapshot_refused_stream(void) {
    static char text[300];
    zend_resource *resource;
    ZEND_HASH_FOREACH_PTR(&EG(regular_list), resource) {
        if (resource->ptr == NULL ||
            (resource->type != php_file_le_stream() && resource->type != php_file_le_pstream())) {
            continue;
        }
        php_stream *stream = resource->ptr;
        zval about;
        array_init(&about);
        bool encrypted =
            php_stream_populate_meta_data(stream, &about) && zend_hash_str_exists(Z_ARRVAL(about), ZEND_STRL("crypto"));
        zval_ptr_dtor(&about);
        if (encrypted) {
            const char *target = stream->orig_path != NULL ? stream->orig_path : "without a name";
            const char *connection = stream->orig_path != NULL ? NULL : shim_snapshot_refused_connection();
            if (connection != NULL) {
                return connection;
            }
            (snprintf)(text, sizeof text, "the encrypted stream %s (resource #%d)", target, (int)resource->handle);
            return text;
        }
    }
    ZEND_HASH_FOREACH_END();
    return NULL;
}
