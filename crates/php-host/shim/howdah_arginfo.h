/* clang-format off */
/* This is a generated file, edit the .stub.php file instead.
 * Stub hash: 46453a5c50a247501d23d7e813294df708469f60 */

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_frankenphp_handle_request, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, callback, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_headers_send, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, status, IS_LONG, 0, "200")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_fastcgi_finish_request, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_MASK_EX(arginfo_fpm_get_status, 0, 0, MAY_BE_ARRAY|MAY_BE_FALSE)
ZEND_END_ARG_INFO()

#define arginfo_frankenphp_finish_request arginfo_fastcgi_finish_request

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_apache_request_headers, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

#define arginfo_getallheaders arginfo_apache_request_headers

#define arginfo_frankenphp_request_headers arginfo_apache_request_headers

#define arginfo_apache_response_headers arginfo_apache_request_headers

#define arginfo_frankenphp_response_headers arginfo_apache_request_headers

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_frankenphp_log, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, level, IS_LONG, 0, "0")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_mercure_publish, 0, 1, IS_STRING, 0)
	ZEND_ARG_TYPE_MASK(0, topics, MAY_BE_STRING|MAY_BE_ARRAY, NULL)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, data, IS_STRING, 0, "\'\'")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, private, _IS_BOOL, 0, "false")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, id, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, type, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, retry, IS_LONG, 1, "null")
ZEND_END_ARG_INFO()

#define arginfo_Howdah_handle_request arginfo_frankenphp_handle_request

#define arginfo_Howdah_headers_send arginfo_headers_send

#define arginfo_Howdah_finish_request arginfo_fastcgi_finish_request

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Howdah_log, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, message, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, level, IS_LONG, 0, "6")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, context, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

#define arginfo_Howdah_snapshot arginfo_fastcgi_finish_request

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Howdah_on_restore, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, callback, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

#define arginfo_Howdah_after_warmup arginfo_Howdah_on_restore

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Howdah_connect_each_worker, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, connect, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Howdah_boot_again, 0, 0, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, why, IS_STRING, 0, "\'\'")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Howdah_redefine, 0, 2, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, constant, IS_STRING, 0)
	ZEND_ARG_TYPE_MASK(0, value, MAY_BE_LONG|MAY_BE_DOUBLE, NULL)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Howdah_mode, 0, 0, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Howdah_route, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, name, IS_STRING, 0)
ZEND_END_ARG_INFO()

#define arginfo_Howdah_request_id arginfo_Howdah_mode

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_Howdah_WebSocket_event, 0, 0, Howdah\\WebSocketEvent, 1)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_Howdah_WebSocket_accept, 0, 0, Howdah\\WebSocketConnection, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocket_send, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, connection, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, data, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, binary, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocket_close, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, connection, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, code, IS_LONG, 0, "1000")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, reason, IS_STRING, 0, "\'\'")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocket_subscribe, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, connection, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, after, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, keep, IS_LONG, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocket_unsubscribe, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, connection, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocket_exists, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, connection, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocket_count, 0, 0, IS_LONG, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, channel, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocket_connections, 0, 0, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, channel, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocket_publish, 0, 2, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO(0, data, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, binary, _IS_BOOL, 0, "false")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, id, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_class_Howdah_WebSocketConnection___construct, 0, 0, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketConnection_receive, 0, 0, IS_STRING, 1)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, timeout, IS_DOUBLE, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketConnection_send, 0, 1, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO(0, data, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, binary, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketConnection_close, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, code, IS_LONG, 0, "1000")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, reason, IS_STRING, 0, "\'\'")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketConnection_current, 0, 0, IS_STRING, 1)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketConnection_key, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketConnection_next, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

#define arginfo_class_Howdah_WebSocketConnection_rewind arginfo_class_Howdah_WebSocketConnection_next

#define arginfo_class_Howdah_WebSocketConnection_valid arginfo_fastcgi_finish_request

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketEvent_send, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, data, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, binary, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

#define arginfo_class_Howdah_WebSocketEvent_close arginfo_class_Howdah_WebSocketConnection_close

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketEvent_subscribe, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, after, IS_STRING, 1, "null")
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, keep, IS_LONG, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketEvent_unsubscribe, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, channel, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_WebSocketEvent_setState, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, state, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_Howdah_Coroutine_start, 0, 1, Howdah\\Coroutine, 0)
	ZEND_ARG_TYPE_INFO(0, function, IS_CALLABLE, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, detached, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_class_Howdah_Coroutine_current, 0, 0, Howdah\\Coroutine, 1)
ZEND_END_ARG_INFO()

#define arginfo_class_Howdah_Coroutine_main arginfo_class_Howdah_Coroutine_current

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_Coroutine_park, 0, 0, _IS_BOOL, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, seconds, IS_DOUBLE, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_Coroutine_shield, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, on, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_Coroutine_afterResponse, 0, 1, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO(0, function, IS_CALLABLE, 0)
ZEND_END_ARG_INFO()

#define arginfo_class_Howdah_Coroutine_count arginfo_class_Howdah_WebSocketConnection_key

#define arginfo_class_Howdah_Coroutine_wake arginfo_class_Howdah_WebSocketConnection_next

#define arginfo_class_Howdah_Coroutine_join arginfo_class_Howdah_Coroutine_park

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_class_Howdah_Coroutine_cancel, 0, 0, IS_VOID, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, why, IS_STRING, 0, "\'\'")
ZEND_END_ARG_INFO()

#define arginfo_class_Howdah_Coroutine_atEnd arginfo_class_Howdah_Coroutine_afterResponse

#define arginfo_class_Howdah_Coroutine_isDone arginfo_fastcgi_finish_request

#define arginfo_class_Howdah_Coroutine_isCancelled arginfo_fastcgi_finish_request

#define arginfo_class_Howdah_Coroutine_id arginfo_class_Howdah_WebSocketConnection_key

#define arginfo_class_Howdah_Coroutine_backtrace arginfo_apache_request_headers


ZEND_FUNCTION(frankenphp_handle_request);
ZEND_FUNCTION(headers_send);
ZEND_FUNCTION(fastcgi_finish_request);
ZEND_FUNCTION(fpm_get_status);
ZEND_FUNCTION(apache_request_headers);
ZEND_FUNCTION(apache_response_headers);
ZEND_FUNCTION(frankenphp_log);
ZEND_FUNCTION(mercure_publish);
ZEND_FUNCTION(Howdah_log);
ZEND_FUNCTION(Howdah_snapshot);
ZEND_FUNCTION(Howdah_on_restore);
ZEND_FUNCTION(Howdah_after_warmup);
ZEND_FUNCTION(Howdah_connect_each_worker);
ZEND_FUNCTION(Howdah_boot_again);
ZEND_FUNCTION(Howdah_redefine);
ZEND_FUNCTION(Howdah_mode);
ZEND_FUNCTION(Howdah_route);
ZEND_FUNCTION(Howdah_request_id);
ZEND_METHOD(Howdah_WebSocket, event);
ZEND_METHOD(Howdah_WebSocket, accept);
ZEND_METHOD(Howdah_WebSocket, send);
ZEND_METHOD(Howdah_WebSocket, close);
ZEND_METHOD(Howdah_WebSocket, subscribe);
ZEND_METHOD(Howdah_WebSocket, unsubscribe);
ZEND_METHOD(Howdah_WebSocket, exists);
ZEND_METHOD(Howdah_WebSocket, count);
ZEND_METHOD(Howdah_WebSocket, connections);
ZEND_METHOD(Howdah_WebSocket, publish);
ZEND_METHOD(Howdah_WebSocketConnection, __construct);
ZEND_METHOD(Howdah_WebSocketConnection, receive);
ZEND_METHOD(Howdah_WebSocketConnection, send);
ZEND_METHOD(Howdah_WebSocketConnection, close);
ZEND_METHOD(Howdah_WebSocketConnection, current);
ZEND_METHOD(Howdah_WebSocketConnection, key);
ZEND_METHOD(Howdah_WebSocketConnection, next);
ZEND_METHOD(Howdah_WebSocketConnection, rewind);
ZEND_METHOD(Howdah_WebSocketConnection, valid);
ZEND_METHOD(Howdah_WebSocketEvent, send);
ZEND_METHOD(Howdah_WebSocketEvent, close);
ZEND_METHOD(Howdah_WebSocketEvent, subscribe);
ZEND_METHOD(Howdah_WebSocketEvent, unsubscribe);
ZEND_METHOD(Howdah_WebSocketEvent, setState);
ZEND_METHOD(Howdah_Coroutine, start);
ZEND_METHOD(Howdah_Coroutine, current);
ZEND_METHOD(Howdah_Coroutine, main);
ZEND_METHOD(Howdah_Coroutine, park);
ZEND_METHOD(Howdah_Coroutine, shield);
ZEND_METHOD(Howdah_Coroutine, afterResponse);
ZEND_METHOD(Howdah_Coroutine, count);
ZEND_METHOD(Howdah_Coroutine, wake);
ZEND_METHOD(Howdah_Coroutine, join);
ZEND_METHOD(Howdah_Coroutine, cancel);
ZEND_METHOD(Howdah_Coroutine, atEnd);
ZEND_METHOD(Howdah_Coroutine, isDone);
ZEND_METHOD(Howdah_Coroutine, isCancelled);
ZEND_METHOD(Howdah_Coroutine, id);
ZEND_METHOD(Howdah_Coroutine, backtrace);


static const zend_function_entry ext_functions[] = {
	ZEND_FE(frankenphp_handle_request, arginfo_frankenphp_handle_request)
	ZEND_FE(headers_send, arginfo_headers_send)
	ZEND_FE(fastcgi_finish_request, arginfo_fastcgi_finish_request)
	ZEND_FE(fpm_get_status, arginfo_fpm_get_status)
	ZEND_FALIAS(frankenphp_finish_request, fastcgi_finish_request, arginfo_frankenphp_finish_request)
	ZEND_FE(apache_request_headers, arginfo_apache_request_headers)
	ZEND_FALIAS(getallheaders, apache_request_headers, arginfo_getallheaders)
	ZEND_FALIAS(frankenphp_request_headers, apache_request_headers, arginfo_frankenphp_request_headers)
	ZEND_FE(apache_response_headers, arginfo_apache_response_headers)
	ZEND_FALIAS(frankenphp_response_headers, apache_response_headers, arginfo_frankenphp_response_headers)
	ZEND_FE(frankenphp_log, arginfo_frankenphp_log)
	ZEND_FE(mercure_publish, arginfo_mercure_publish)
	ZEND_NS_FALIAS("Howdah", handle_request, frankenphp_handle_request, arginfo_Howdah_handle_request)
	ZEND_NS_FALIAS("Howdah", headers_send, headers_send, arginfo_Howdah_headers_send)
	ZEND_NS_FALIAS("Howdah", finish_request, fastcgi_finish_request, arginfo_Howdah_finish_request)
	ZEND_NS_FALIAS("Howdah", log, Howdah_log, arginfo_Howdah_log)
	ZEND_NS_FALIAS("Howdah", snapshot, Howdah_snapshot, arginfo_Howdah_snapshot)
	ZEND_NS_FALIAS("Howdah", on_restore, Howdah_on_restore, arginfo_Howdah_on_restore)
	ZEND_NS_FALIAS("Howdah", after_warmup, Howdah_after_warmup, arginfo_Howdah_after_warmup)
	ZEND_NS_FALIAS("Howdah", connect_each_worker, Howdah_connect_each_worker, arginfo_Howdah_connect_each_worker)
	ZEND_NS_FALIAS("Howdah", boot_again, Howdah_boot_again, arginfo_Howdah_boot_again)
	ZEND_NS_FALIAS("Howdah", redefine, Howdah_redefine, arginfo_Howdah_redefine)
	ZEND_NS_FALIAS("Howdah", mode, Howdah_mode, arginfo_Howdah_mode)
	ZEND_NS_FALIAS("Howdah", route, Howdah_route, arginfo_Howdah_route)
	ZEND_NS_FALIAS("Howdah", request_id, Howdah_request_id, arginfo_Howdah_request_id)
	ZEND_FE_END
};


static const zend_function_entry class_Howdah_WebSocket_methods[] = {
	ZEND_ME(Howdah_WebSocket, event, arginfo_class_Howdah_WebSocket_event, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_WebSocket, accept, arginfo_class_Howdah_WebSocket_accept, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_WebSocket, send, arginfo_class_Howdah_WebSocket_send, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_WebSocket, close, arginfo_class_Howdah_WebSocket_close, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_WebSocket, subscribe, arginfo_class_Howdah_WebSocket_subscribe, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_WebSocket, unsubscribe, arginfo_class_Howdah_WebSocket_unsubscribe, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_WebSocket, exists, arginfo_class_Howdah_WebSocket_exists, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_WebSocket, count, arginfo_class_Howdah_WebSocket_count, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_WebSocket, connections, arginfo_class_Howdah_WebSocket_connections, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_WebSocket, publish, arginfo_class_Howdah_WebSocket_publish, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_FE_END
};


static const zend_function_entry class_Howdah_WebSocketConnection_methods[] = {
	ZEND_ME(Howdah_WebSocketConnection, __construct, arginfo_class_Howdah_WebSocketConnection___construct, ZEND_ACC_PRIVATE)
	ZEND_ME(Howdah_WebSocketConnection, receive, arginfo_class_Howdah_WebSocketConnection_receive, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketConnection, send, arginfo_class_Howdah_WebSocketConnection_send, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketConnection, close, arginfo_class_Howdah_WebSocketConnection_close, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketConnection, current, arginfo_class_Howdah_WebSocketConnection_current, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketConnection, key, arginfo_class_Howdah_WebSocketConnection_key, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketConnection, next, arginfo_class_Howdah_WebSocketConnection_next, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketConnection, rewind, arginfo_class_Howdah_WebSocketConnection_rewind, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketConnection, valid, arginfo_class_Howdah_WebSocketConnection_valid, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};


static const zend_function_entry class_Howdah_WebSocketEvent_methods[] = {
	ZEND_ME(Howdah_WebSocketEvent, send, arginfo_class_Howdah_WebSocketEvent_send, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketEvent, close, arginfo_class_Howdah_WebSocketEvent_close, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketEvent, subscribe, arginfo_class_Howdah_WebSocketEvent_subscribe, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketEvent, unsubscribe, arginfo_class_Howdah_WebSocketEvent_unsubscribe, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_WebSocketEvent, setState, arginfo_class_Howdah_WebSocketEvent_setState, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};


static const zend_function_entry class_Howdah_Coroutine_methods[] = {
	ZEND_ME(Howdah_Coroutine, start, arginfo_class_Howdah_Coroutine_start, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_Coroutine, current, arginfo_class_Howdah_Coroutine_current, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_Coroutine, main, arginfo_class_Howdah_Coroutine_main, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_Coroutine, park, arginfo_class_Howdah_Coroutine_park, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_Coroutine, shield, arginfo_class_Howdah_Coroutine_shield, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_Coroutine, afterResponse, arginfo_class_Howdah_Coroutine_afterResponse, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_Coroutine, count, arginfo_class_Howdah_Coroutine_count, ZEND_ACC_PUBLIC|ZEND_ACC_STATIC)
	ZEND_ME(Howdah_Coroutine, wake, arginfo_class_Howdah_Coroutine_wake, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_Coroutine, join, arginfo_class_Howdah_Coroutine_join, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_Coroutine, cancel, arginfo_class_Howdah_Coroutine_cancel, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_Coroutine, atEnd, arginfo_class_Howdah_Coroutine_atEnd, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_Coroutine, isDone, arginfo_class_Howdah_Coroutine_isDone, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_Coroutine, isCancelled, arginfo_class_Howdah_Coroutine_isCancelled, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_Coroutine, id, arginfo_class_Howdah_Coroutine_id, ZEND_ACC_PUBLIC)
	ZEND_ME(Howdah_Coroutine, backtrace, arginfo_class_Howdah_Coroutine_backtrace, ZEND_ACC_PUBLIC)
	ZEND_FE_END
};

static void register_howdah_symbols(int module_number)
{
	REGISTER_LONG_CONSTANT("FRANKENPHP_LOG_LEVEL_DEBUG", -4, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("FRANKENPHP_LOG_LEVEL_INFO", 0, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("FRANKENPHP_LOG_LEVEL_WARN", 4, CONST_PERSISTENT);
	REGISTER_LONG_CONSTANT("FRANKENPHP_LOG_LEVEL_ERROR", 8, CONST_PERSISTENT);
}

static zend_class_entry *register_class_Howdah_WebSocket(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Howdah", "WebSocket", class_Howdah_WebSocket_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL;

	return class_entry;
}

static zend_class_entry *register_class_Howdah_WebSocketConnection(zend_class_entry *class_entry_Iterator)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Howdah", "WebSocketConnection", class_Howdah_WebSocketConnection_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES|ZEND_ACC_NOT_SERIALIZABLE;
	zend_class_implements(class_entry, 1, class_entry_Iterator);

	zval property_id_default_value;
	ZVAL_UNDEF(&property_id_default_value);
	zend_string *property_id_name = zend_string_init("id", sizeof("id") - 1, 1);
	zend_declare_typed_property(class_entry, property_id_name, &property_id_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_id_name);

	zval property_binary_default_value;
	ZVAL_FALSE(&property_binary_default_value);
	zend_string *property_binary_name = zend_string_init("binary", sizeof("binary") - 1, 1);
	zend_declare_typed_property(class_entry, property_binary_name, &property_binary_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_BOOL));
	zend_string_release(property_binary_name);

	zval property_code_default_value;
	ZVAL_LONG(&property_code_default_value, 0);
	zend_string *property_code_name = zend_string_init("code", sizeof("code") - 1, 1);
	zend_declare_typed_property(class_entry, property_code_name, &property_code_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_code_name);

	zval property_reason_default_value;
	ZVAL_EMPTY_STRING(&property_reason_default_value);
	zend_string *property_reason_name = zend_string_init("reason", sizeof("reason") - 1, 1);
	zend_declare_typed_property(class_entry, property_reason_name, &property_reason_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_reason_name);

	return class_entry;
}

static zend_class_entry *register_class_Howdah_WebSocketEvent(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Howdah", "WebSocketEvent", class_Howdah_WebSocketEvent_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES|ZEND_ACC_NOT_SERIALIZABLE;

	zval property_type_default_value;
	ZVAL_UNDEF(&property_type_default_value);
	zend_string *property_type_name = zend_string_init("type", sizeof("type") - 1, 1);
	zend_declare_typed_property(class_entry, property_type_name, &property_type_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_type_name);

	zval property_connection_default_value;
	ZVAL_UNDEF(&property_connection_default_value);
	zend_string *property_connection_name = zend_string_init("connection", sizeof("connection") - 1, 1);
	zend_declare_typed_property(class_entry, property_connection_name, &property_connection_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_connection_name);

	zval property_data_default_value;
	ZVAL_UNDEF(&property_data_default_value);
	zend_string *property_data_name = zend_string_init("data", sizeof("data") - 1, 1);
	zend_declare_typed_property(class_entry, property_data_name, &property_data_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_data_name);

	zval property_binary_default_value;
	ZVAL_UNDEF(&property_binary_default_value);
	zend_string *property_binary_name = zend_string_init("binary", sizeof("binary") - 1, 1);
	zend_declare_typed_property(class_entry, property_binary_name, &property_binary_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_BOOL));
	zend_string_release(property_binary_name);

	zval property_code_default_value;
	ZVAL_UNDEF(&property_code_default_value);
	zend_string *property_code_name = zend_string_init("code", sizeof("code") - 1, 1);
	zend_declare_typed_property(class_entry, property_code_name, &property_code_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_LONG));
	zend_string_release(property_code_name);

	zval property_state_default_value;
	ZVAL_UNDEF(&property_state_default_value);
	zend_string *property_state_name = zend_string_init("state", sizeof("state") - 1, 1);
	zend_declare_typed_property(class_entry, property_state_name, &property_state_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_STRING));
	zend_string_release(property_state_name);

	return class_entry;
}

static zend_class_entry *register_class_Howdah_Coroutine(void)
{
	zend_class_entry ce, *class_entry;

	INIT_NS_CLASS_ENTRY(ce, "Howdah", "Coroutine", class_Howdah_Coroutine_methods);
	class_entry = zend_register_internal_class_ex(&ce, NULL);
	class_entry->ce_flags |= ZEND_ACC_FINAL|ZEND_ACC_NO_DYNAMIC_PROPERTIES|ZEND_ACC_NOT_SERIALIZABLE;

	zval property_data_default_value;
	ZVAL_EMPTY_ARRAY(&property_data_default_value);
	zend_string *property_data_name = zend_string_init("data", sizeof("data") - 1, 1);
	zend_declare_typed_property(class_entry, property_data_name, &property_data_default_value, ZEND_ACC_PUBLIC, NULL, (zend_type) ZEND_TYPE_INIT_MASK(MAY_BE_ARRAY));
	zend_string_release(property_data_name);

	return class_entry;
}
