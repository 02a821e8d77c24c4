/* Howdah\WebSocketConnection: a client's WebSocket connection that a coroutine holds. */
#ifndef HOWDAH_ASYNC_CORE_WEBSOCKET_CONNECTION_H
#define HOWDAH_ASYNC_CORE_WEBSOCKET_CONNECTION_H

#include "shim.h"
#include "async/core/coroutine.h"

void websocket_connection_class_startup(zend_class_entry *registered);
/* The worker ends soon: asks the server to close all connections, each at another moment. */
void websocket_connections_leave(void);

#endif
