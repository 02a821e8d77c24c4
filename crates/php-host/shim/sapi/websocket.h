/* Howdah\WebSocket and Howdah\WebSocketEvent: events of connections that the server holds, and orders to the server. */
#ifndef HOWDAH_SAPI_WEBSOCKET_H
#define HOWDAH_SAPI_WEBSOCKET_H

#include "shim.h"

void websocket_class_startup(zend_class_entry *event);

#endif
