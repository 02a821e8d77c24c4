/* Howdah\Coroutine, the basis of the PHP library (php/async). */
#ifndef HOWDAH_ASYNC_CORE_COROUTINE_CLASS_H
#define HOWDAH_ASYNC_CORE_COROUTINE_CLASS_H

#include "shim.h"
#include "async/core/coroutine.h"

void coroutine_class_startup(zend_class_entry *registered);
/* Returns the object of a coroutine, a new reference. */
zend_object *coroutine_object_of(coroutine *self);
/* Called when the coroutine has ended: disconnects its object. */
void coroutine_object_release(coroutine *self);
/* Disconnects the object from the coroutine. Returns the reference that the coroutine held, or NULL. */
zend_object *coroutine_object_detach(coroutine *self);
/* Returns the coroutine of an object; NULL if it has ended. */
coroutine *coroutine_of_object(zend_object *object);
/* Calls the functions of a list (IS_UNDEF or an array), last one first, and empties it. */
void async_call_list(zval *list);

#endif
