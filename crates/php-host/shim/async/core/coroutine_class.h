/* Howdah\Coroutine, on which the PHP library (php/async) is built. */
#ifndef HOWDAH_ASYNC_CORE_COROUTINE_CLASS_H
#define HOWDAH_ASYNC_CORE_COROUTINE_CLASS_H

#include "shim.h"
#include "async/core/coroutine.h"

void coroutine_class_startup(zend_class_entry *registered);
/* The object of a coroutine, a new reference. */
zend_object *coroutine_object_of(coroutine *self);
/* True if it is the coroutine's object. */
bool coroutine_is(const coroutine *self, const zend_object *object);
/* The coroutine has ended: its object forgets it. */
void coroutine_object_release(coroutine *self);
/* The object no longer speaks for the coroutine; the reference that this had, or NULL. */
zend_object *coroutine_object_detach(coroutine *self);
/* The coroutine that an object stands for; NULL: it has ended. */
coroutine *coroutine_of_object(zend_object *object);
/* Calls the functions of a list (IS_UNDEF or an array), last one first, and empties it. */
void async_call_list(zval *list);

#endif
