/* Howdah\Coroutine, the basis of the PHP library of async mode (php/async). Tasks, channels and pools are PHP code;
 * this file contains only what PHP code cannot do: start a coroutine, wait, wake another, cancel. */
#include "async/core/coroutine_class.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/timers.h"
#include "async/core/request.h"
#include "async/core/throw.h"
#include "async/core/worker.h"
#include "async/pools/pools.h"

#include <zend_builtin_functions.h>
#include <zend_closures.h>
#include <zend_interfaces.h>

struct coroutine_object {
    /* NULL once it has ended. */
    coroutine *self;
    uint64_t id;
    bool cancelled;
    zend_object std;
};

static zend_class_entry *class_entry;
static zend_object_handlers handlers;

static coroutine_object *of(zend_object *object) {
    return (coroutine_object *)((char *)object - XtOffsetOf(coroutine_object, std));
}

static zend_object *create(zend_class_entry *class_type) {
    coroutine_object *object = zend_object_alloc(sizeof *object, class_type);
    object->self = NULL;
    object->id = 0;
    object->cancelled = false;
    zend_object_std_init(&object->std, class_type);
    object_properties_init(&object->std, class_type);
    object->std.handlers = &handlers;
    return &object->std;
}

/* The coroutine holds a reference to its object as long as it lives: its data must not be freed with the last
 * variable. */
zend_object *coroutine_object_of(coroutine *self) {
    if (self->object == NULL) {
        coroutine_object *object = of(create(class_entry));
        object->self = self;
        object->id = self->id;
        self->object = object;
    }
    GC_ADDREF(&self->object->std);
    return &self->object->std;
}

coroutine *coroutine_of_object(zend_object *object) {
    return object->ce == class_entry ? of(object)->self : NULL;
}

zend_object *coroutine_object_detach(coroutine *self) {
    coroutine_object *object = self->object;
    if (object == NULL) {
        return NULL;
    }
    self->object = NULL;
    object->self = NULL;
    object->cancelled = self->cancelled;
    return &object->std;
}

void coroutine_object_release(coroutine *self) {
    async_pools_come_back(self);
    coroutine_object *object = self->object;
    if (object == NULL) {
        return;
    }
    /* Releases its data now, even if the object is still referenced, so that the coroutine's locks and connections are
     * returned. */
    zval *data = OBJ_PROP_NUM(&object->std, 0);
    zval old = *data;
    ZVAL_EMPTY_ARRAY(data);
    zval_ptr_dtor(&old);
    OBJ_RELEASE(coroutine_object_detach(self));
}

/* --- the body of a coroutine that a script started --- */

static void call(zval *function) {
    zval result;
    ZVAL_UNDEF(&result);
    if (call_user_function(NULL, NULL, function, &result, 0, NULL) == SUCCESS) {
        zval_ptr_dtor(&result);
    }
    async_exit_or_report();
}

static void call_own_function(void *self) {
    call(&((coroutine *)self)->function);
}

static void call_at_end(void *list) {
    async_call_list(list);
}

static void end_output(void *unused) {
    (void)unused;
    php_output_end_all();
}

/* A coroutine of the request has ended. */
static void leave(async_request *request) {
    request->coroutines--;
    if (request->main_waits_for_others && request->coroutines == 1) {
        coroutine_wake(request->main, COROUTINE_WOKEN);
    }
}

static void body(coroutine *self) {
    coroutine_guarded(call_own_function, self);
    coroutine_guarded(call_at_end, &self->at_end);
    coroutine_guarded(end_output, NULL);
    async_request *request = self->request;
    if (request != NULL) {
        self->request = NULL;
        leave(request);
    }
}

void async_call_list(zval *list) {
    while (Z_TYPE_P(list) == IS_ARRAY && zend_hash_num_elements(Z_ARRVAL_P(list)) > 0) {
        HashTable *functions = Z_ARRVAL_P(list);
        HashPosition last;
        zend_hash_internal_pointer_end_ex(functions, &last);
        zval function;
        ZVAL_COPY(&function, zend_hash_get_current_data_ex(functions, &last));
        zend_hash_index_del(functions, functions->nNextFreeElement - 1);
        functions->nNextFreeElement--;
        call(&function);
        zval_ptr_dtor(&function);
    }
}

static void add_to_list(zval *list, zval *function) {
    if (Z_TYPE_P(list) != IS_ARRAY) {
        array_init(list);
    }
    Z_TRY_ADDREF_P(function);
    add_next_index_zval(list, function);
}

/* --- methods --- */

/* Returns the running coroutine if it may wait; otherwise throws and returns NULL. */
static coroutine *waiting_coroutine(void) {
    if (coroutine_may_wait()) {
        return coroutine_current;
    }
    const char *why = coroutine_current == NULL ? "Cannot wait outside of a coroutine"
                                                : "Cannot wait here: PHP is in an autoloader, the compiler or the "
                                                  "garbage collector";
    zend_throw_error(NULL, "%s", why);
    return NULL;
}

/* Waits for other PHP code, with its exceptions. False: the timeout has expired, or an exception was thrown. */
static bool wait_for_php(coroutine *self, double seconds, bool forever, const char *what) {
    self->waits_for_php = true;
    self->may_be_failed = true;
    coroutine_woken woken = coroutine_wait(async_until(seconds, forever), what);
    self->waits_for_php = false;
    self->may_be_failed = false;
    if (woken == COROUTINE_CANCELLED) {
        self->cancel_thrown = true;
        async_throw("CancelledException", self->cancel_reason != NULL && ZSTR_LEN(self->cancel_reason) > 0
                                              ? ZSTR_VAL(self->cancel_reason)
                                              : "The coroutine was cancelled");
    } else if (self->deadlocked) {
        self->deadlocked = false;
        async_throw("DeadlockError", "All coroutines of this process wait for each other");
    } else {
        return woken == COROUTINE_WOKEN;
    }
    return false;
}

PHP_METHOD(Howdah_Coroutine, start) {
    zval *function;
    bool detached = false;
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 2)
    Z_PARAM_FUNC(info, cache)
    Z_PARAM_OPTIONAL
    Z_PARAM_BOOL(detached)
    ZEND_PARSE_PARAMETERS_END();
    function = ZEND_CALL_VAR_NUM(execute_data, 0);
    if (!coroutine_available || shim.script_child) {
        zend_throw_error(NULL, "Coroutines need async mode");
        RETURN_THROWS();
    }
    async_request *request = detached || coroutine_current == NULL ? NULL : coroutine_current->request;
    coroutine *self = coroutine_start(body, request);
    if (self == NULL) {
        zend_throw_error(NULL, "No memory for another coroutine");
        RETURN_THROWS();
    }
    ZVAL_COPY(&self->function, function);
    if (request != NULL) {
        request->coroutines++;
    }
    if (async_ending()) {
        coroutine_cancel(self, NULL);
    }
    RETURN_OBJ(coroutine_object_of(self));
}

PHP_METHOD(Howdah_Coroutine, current) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (coroutine_current == NULL) {
        RETURN_NULL();
    }
    RETURN_OBJ(coroutine_object_of(coroutine_current));
}

PHP_METHOD(Howdah_Coroutine, main) {
    ZEND_PARSE_PARAMETERS_NONE();
    if (coroutine_current == NULL || coroutine_current->request == NULL) {
        RETURN_NULL();
    }
    RETURN_OBJ(coroutine_object_of(coroutine_current->request->main));
}

PHP_METHOD(Howdah_Coroutine, park) {
    double seconds = 0;
    bool forever = true;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(seconds, forever)
    ZEND_PARSE_PARAMETERS_END();
    coroutine *self = waiting_coroutine();
    if (self == NULL) {
        RETURN_THROWS();
    }
    if (self->permit && !(self->cancelled && self->shields == 0)) {
        self->permit = false;
        RETURN_TRUE;
    }
    bool woken = wait_for_php(self, seconds, forever, "park");
    if (EG(exception) != NULL) {
        RETURN_THROWS();
    }
    self->permit = false;
    RETURN_BOOL(woken);
}

PHP_METHOD(Howdah_Coroutine, wake) {
    ZEND_PARSE_PARAMETERS_NONE();
    coroutine *self = of(Z_OBJ_P(ZEND_THIS))->self;
    if (self == NULL) {
        return;
    }
    if (self->state == COROUTINE_WAITING && self->may_be_failed && !self->joins) {
        coroutine_wake(self, COROUTINE_WOKEN);
    } else {
        self->permit = true;
    }
}

static void leave_joiners(coroutine *other, coroutine *self) {
    coroutine **at = &other->joiner;
    while (*at != NULL && *at != self) {
        at = &(*at)->next_joiner;
    }
    if (*at != NULL) {
        *at = self->next_joiner;
        self->next_joiner = NULL;
    }
}

PHP_METHOD(Howdah_Coroutine, join) {
    double seconds = 0;
    bool forever = true;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_DOUBLE_OR_NULL(seconds, forever)
    ZEND_PARSE_PARAMETERS_END();
    coroutine_object *object = of(Z_OBJ_P(ZEND_THIS));
    if (object->self == NULL) {
        RETURN_TRUE;
    }
    coroutine *self = waiting_coroutine();
    if (self == NULL) {
        RETURN_THROWS();
    }
    if (object->self == self) {
        zend_throw_error(NULL, "A coroutine cannot wait for its own end");
        RETURN_THROWS();
    }
    coroutine **at = &object->self->joiner;
    while (*at != NULL) {
        at = &(*at)->next_joiner;
    }
    *at = self;
    self->joins = true;
    wait_for_php(self, seconds, forever, "join");
    self->joins = false;
    if (object->self != NULL) {
        leave_joiners(object->self, self);
    }
    if (EG(exception) != NULL) {
        RETURN_THROWS();
    }
    RETURN_BOOL(object->self == NULL);
}

PHP_METHOD(Howdah_Coroutine, cancel) {
    zend_string *why = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
    Z_PARAM_OPTIONAL
    Z_PARAM_STR(why)
    ZEND_PARSE_PARAMETERS_END();
    coroutine *self = of(Z_OBJ_P(ZEND_THIS))->self;
    if (self != NULL) {
        coroutine_cancel(self, why);
    }
}

PHP_METHOD(Howdah_Coroutine, shield) {
    bool on;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_BOOL(on)
    ZEND_PARSE_PARAMETERS_END();
    coroutine *self = coroutine_current;
    if (self == NULL) {
        return;
    }
    if (on) {
        self->shields++;
    } else if (self->shields > 0 && --self->shields == 0 && self->cancelled) {
        async_interrupt();
    }
}

PHP_METHOD(Howdah_Coroutine, isDone) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_BOOL(of(Z_OBJ_P(ZEND_THIS))->self == NULL);
}

PHP_METHOD(Howdah_Coroutine, isCancelled) {
    ZEND_PARSE_PARAMETERS_NONE();
    const coroutine_object *object = of(Z_OBJ_P(ZEND_THIS));
    RETURN_BOOL(object->self != NULL ? object->self->cancelled : object->cancelled);
}

PHP_METHOD(Howdah_Coroutine, id) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG((zend_long)of(Z_OBJ_P(ZEND_THIS))->id);
}

PHP_METHOD(Howdah_Coroutine, backtrace) {
    ZEND_PARSE_PARAMETERS_NONE();
    const coroutine *self = of(Z_OBJ_P(ZEND_THIS))->self;
    if (self == NULL || self->state == COROUTINE_RUNNING || self->frame == NULL) {
        RETURN_EMPTY_ARRAY();
    }
    zend_execute_data *here = EG(current_execute_data);
    EG(current_execute_data) = self->frame;
    zend_fetch_debug_backtrace(return_value, 0, 0, 0);
    EG(current_execute_data) = here;
}

PHP_METHOD(Howdah_Coroutine, afterResponse) {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(info, cache)
    ZEND_PARSE_PARAMETERS_END();
    if (coroutine_current == NULL || coroutine_current->request == NULL) {
        zend_throw_error(NULL, "There is no request whose response could be awaited");
        RETURN_THROWS();
    }
    add_to_list(&coroutine_current->request->after_response, ZEND_CALL_VAR_NUM(execute_data, 0));
}

PHP_METHOD(Howdah_Coroutine, atEnd) {
    zend_fcall_info info;
    zend_fcall_info_cache cache;
    ZEND_PARSE_PARAMETERS_START(1, 1)
    Z_PARAM_FUNC(info, cache)
    ZEND_PARSE_PARAMETERS_END();
    coroutine *self = of(Z_OBJ_P(ZEND_THIS))->self;
    if (self == NULL) {
        zend_throw_error(NULL, "The coroutine has ended");
        RETURN_THROWS();
    }
    add_to_list(&self->at_end, ZEND_CALL_VAR_NUM(execute_data, 0));
}

PHP_METHOD(Howdah_Coroutine, count) {
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(coroutine_count());
}

void coroutine_class_startup(zend_class_entry *registered) {
    class_entry = registered;
    class_entry->create_object = create;
    handlers = *zend_get_std_object_handlers();
    handlers.offset = XtOffsetOf(coroutine_object, std);
    handlers.clone_obj = NULL;
}
