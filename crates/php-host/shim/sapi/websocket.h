/* Howdah\WebSocket and Howdah\WebSocketEvent: events of connections that the server holds, and orders to the server. */
#ifndef HOWDAH_SAPI_WEBSOCKET_H
#define HOWDAH_SAPI_WEBSOCKET_H

#include "shim.h"

/* RFC 6455 5.5: a control frame's 125 bytes, two of which are the code. */
#define WEBSOCKET_MAX_REASON 123

void websocket_class_startup(zend_class_entry *event);
/* A variable of the current request that the server has sent by its text; NULL: it has none. */
const char *websocket_variable(const char *name, size_t *length);
/* False with an exception: a script may not close with this code and reason. `argument`: the code's position. */
bool websocket_close_is_valid(zend_long code, const zend_string *reason, uint32_t argument);

#endif
