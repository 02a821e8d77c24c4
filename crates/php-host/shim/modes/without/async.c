/* A build without async mode (the feature `async` of howdah-php): the functions that other files call. There is never a
 * coroutine. */
#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/coroutine_class.h"
#include "async/core/questions.h"
#include "async/core/websocket_connection.h"
#include "async/pools/pools.h"
#include "async/tools/stacks.h"

coroutine *coroutine_current;

const coroutine *const *coroutine_youngest_place(void) {
    static const coroutine *none;
    return &none;
}

SHIM_EXPORT void howdah_c_compile_library(void) {
}

bool coroutine_may_wait(void) {
    return false;
}

bool async_question_turn(void) {
    return true;
}

int async_question_ask(void) {
    return -1;
}

void coroutine_class_startup(zend_class_entry *registered) {
    (void)registered;
}

void websocket_connection_class_startup(zend_class_entry *registered) {
    (void)registered;
}

void async_pools_class_startup(void) {
}

void async_stacks_class_startup(void) {
}

#define UNAVAILABLE_IN(class, method)                                                                                  \
    PHP_METHOD(class, method) {                                                                                        \
        zend_throw_error(NULL, "howdah-php was built without async mode");                                             \
    }

#define UNAVAILABLE(method) UNAVAILABLE_IN(Howdah_Coroutine, method)

UNAVAILABLE(afterResponse)
UNAVAILABLE(atEnd)
UNAVAILABLE(backtrace)
UNAVAILABLE(cancel)
UNAVAILABLE(count)
UNAVAILABLE(current)
UNAVAILABLE(id)
UNAVAILABLE(isCancelled)
UNAVAILABLE(isDone)
UNAVAILABLE(join)
UNAVAILABLE(main)
UNAVAILABLE(park)
UNAVAILABLE(shield)
UNAVAILABLE(start)
UNAVAILABLE(wake)

#define NO_CONNECTION(method) UNAVAILABLE_IN(Howdah_WebSocketConnection, method)

UNAVAILABLE_IN(Howdah_WebSocket, accept)
NO_CONNECTION(__construct)
NO_CONNECTION(receive)
NO_CONNECTION(send)
NO_CONNECTION(close)
NO_CONNECTION(current)
NO_CONNECTION(key)
NO_CONNECTION(next)
NO_CONNECTION(rewind)
NO_CONNECTION(valid)
