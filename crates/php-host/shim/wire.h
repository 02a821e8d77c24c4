/* The C view of a request in the request ring, from crates/transport/src/wire.rs. Written by `make generate`, and
 * compared in a test: do not edit. */
/* clang-format off */

#ifndef HOWDAH_WIRE_H
#define HOWDAH_WIRE_H

#include <stdint.h>

// The response must have no body (HEAD).
#define REQUEST_HEAD_ONLY 1

// The request's body follows the strings in the frame.
#define REQUEST_BODY_INLINE 2

// The request's body comes as a file descriptor over the worker's control socket, once the worker has begun the
// request and asks for the body (`NeedBody`).
#define REQUEST_BODY_FD 4

// The worker measures the processor time of this request (`WireDone::cpu_ns`).
#define REQUEST_MEASURE 8

// The worker sets its nice value before it runs this request: to its own value plus bits 8 to 12 of the flags.
#define REQUEST_NICE 16

// The request had a body of `body_len` bytes that was too large to keep. PHP gets its length and no bytes.
#define REQUEST_BODY_DROPPED 32

// With `REQUEST_BODY_FD`: the descriptor is not a body but the script's end of a `connection_stream`.
#define REQUEST_BODY_STREAM 64

// The access log reports the request's usage: the worker measures the processor time, also the part in the kernel
// (`WireDone::system_ns`), and the response ends only when the request does.
#define REQUEST_USAGE 128

// Bit position of the amount in the flags of a request with `REQUEST_NICE`; five bits, 0 to 19.
#define REQUEST_NICE_SHIFT 8

// In `Cancel`: the client has gone.
#define CANCEL_CLIENT_GONE 1

// In `Cancel`: the request has exceeded its deadline.
#define CANCEL_DEADLINE 2

// In `Head`: first byte of a line that is not a header. PHP sends no header that begins with it.
#define ROUTE_LINE 0

// Maximum number of connection pools that a worker reports; further ones are left out.
#define POOL_SLOTS 21

// Maximum length of a pool's name in bytes.
#define POOL_NAME_LEN 56

// A byte string inside the string area of a request. It is followed by a NUL byte, so C can use it in place.
typedef struct {
    // Offset from the start of the string area.
    uint32_t off;
    // Length in bytes, without the NUL.
    uint32_t len;
} StrRef;

// One variable of a request, for `$_SERVER`.
typedef struct {
    // `VarName` as a number, or 0 for a name that is spelled out in `name`.
    uint32_t name_id;
    // The name, when `name_id` is 0.
    StrRef name;
    // The value.
    StrRef value;
} WireVar;

// Fixed head of a request. In the ring it is followed by `n_vars` × `WireVar`, the strings and an inline body.
typedef struct {
    // The request's number on its lane; set by the server when the request is put there.
    uint64_t number;
    // The request's id in logs.
    uint64_t id;
    // Time at which the request arrived, in microseconds since the Unix epoch.
    uint64_t received_unix_us;
    // Length of the whole request body in bytes.
    uint64_t body_len;
    // `REQUEST_*` bits.
    uint32_t flags;
    // HTTP version × 1000: 1000, 1001, 2000, 3000.
    uint32_t proto;
    // Number of `WireVar` that follow.
    uint32_t n_vars;
    // Length of the string area in bytes.
    uint32_t strings_len;
    // The request method.
    StrRef method;
    // The script's path in the file system.
    StrRef script;
    // The request target as the client sent it (`REQUEST_URI`).
    StrRef uri;
    // The query string, without `?`.
    StrRef query;
    // `Content-Type`, empty when absent.
    StrRef content_type;
    // `Cookie`, empty when absent.
    StrRef cookie;
    // `Authorization`, empty when absent.
    StrRef authorization;
} WireRequest;

#endif  /* HOWDAH_WIRE_H */

/* A worker's report about each of its connection pools. */
typedef enum pool_number {
    POOL_LIMIT,
    POOL_OPEN,
    POOL_IDLE,
    POOL_IN_USE,
    POOL_WAITING,
    POOL_WAIT_MAX,
    POOL_ACQUIRED,
    POOL_WAITS,
    POOL_WAIT,
    POOL_TIMEOUTS,
    POOL_OPENED,
    POOL_CLOSED,
    POOL_OPEN_FAILURES,
    POOL_CHECK_FAILURES,
    POOL_FORGOTTEN,
    POOL_OPEN_TRANSACTIONS,
    POOL_NUMBERS
} pool_number;

/* Variables that travel as a number: X(number, name). */
#define HOWDAH_VAR_COUNT 80
#define HOWDAH_VAR_NAMES(X) \
    X(1, QUERY_STRING) \
    X(2, REQUEST_METHOD) \
    X(3, CONTENT_TYPE) \
    X(4, CONTENT_LENGTH) \
    X(5, SCRIPT_NAME) \
    X(6, REQUEST_URI) \
    X(7, DOCUMENT_URI) \
    X(8, DOCUMENT_ROOT) \
    X(9, SERVER_PROTOCOL) \
    X(10, REQUEST_SCHEME) \
    X(11, HTTPS) \
    X(12, GATEWAY_INTERFACE) \
    X(13, SERVER_SOFTWARE) \
    X(14, REMOTE_ADDR) \
    X(15, REMOTE_PORT) \
    X(16, REMOTE_USER) \
    X(17, SERVER_ADDR) \
    X(18, SERVER_PORT) \
    X(19, SERVER_NAME) \
    X(20, REDIRECT_STATUS) \
    X(21, SCRIPT_FILENAME) \
    X(22, PATH_INFO) \
    X(23, PATH_TRANSLATED) \
    X(24, ORIG_PATH_INFO) \
    X(25, AUTH_TYPE) \
    X(26, REMOTE_HOST) \
    X(27, REMOTE_IDENT) \
    X(28, REQUEST_ID) \
    X(29, UNIQUE_ID) \
    X(30, SSL_PROTOCOL) \
    X(31, SSL_CIPHER) \
    X(32, HTTP_HOST) \
    X(33, HTTP_USER_AGENT) \
    X(34, HTTP_ACCEPT) \
    X(35, HTTP_ACCEPT_ENCODING) \
    X(36, HTTP_ACCEPT_LANGUAGE) \
    X(37, HTTP_ACCEPT_CHARSET) \
    X(38, HTTP_CONNECTION) \
    X(39, HTTP_COOKIE) \
    X(40, HTTP_REFERER) \
    X(41, HTTP_ORIGIN) \
    X(42, HTTP_AUTHORIZATION) \
    X(43, HTTP_CACHE_CONTROL) \
    X(44, HTTP_PRAGMA) \
    X(45, HTTP_CONTENT_TYPE) \
    X(46, HTTP_CONTENT_LENGTH) \
    X(47, HTTP_UPGRADE_INSECURE_REQUESTS) \
    X(48, HTTP_IF_NONE_MATCH) \
    X(49, HTTP_IF_MODIFIED_SINCE) \
    X(50, HTTP_IF_MATCH) \
    X(51, HTTP_IF_UNMODIFIED_SINCE) \
    X(52, HTTP_IF_RANGE) \
    X(53, HTTP_RANGE) \
    X(54, HTTP_X_REQUESTED_WITH) \
    X(55, HTTP_X_FORWARDED_FOR) \
    X(56, HTTP_X_FORWARDED_PROTO) \
    X(57, HTTP_X_FORWARDED_HOST) \
    X(58, HTTP_X_FORWARDED_PORT) \
    X(59, HTTP_FORWARDED) \
    X(60, HTTP_X_REAL_IP) \
    X(61, HTTP_VIA) \
    X(62, HTTP_DNT) \
    X(63, HTTP_TE) \
    X(64, HTTP_UPGRADE) \
    X(65, HTTP_SEC_FETCH_DEST) \
    X(66, HTTP_SEC_FETCH_MODE) \
    X(67, HTTP_SEC_FETCH_SITE) \
    X(68, HTTP_SEC_FETCH_USER) \
    X(69, HTTP_SEC_CH_UA) \
    X(70, HTTP_SEC_CH_UA_MOBILE) \
    X(71, HTTP_SEC_CH_UA_PLATFORM) \
    X(72, HTTP_PRIORITY) \
    X(73, HTTP_EXPECT) \
    X(74, HTTP_TRANSFER_ENCODING) \
    X(75, HTTP_X_CSRF_TOKEN) \
    X(76, HTTP_X_REQUEST_ID) \
    X(77, HTTP_TRACEPARENT) \
    X(78, HTTP_LAST_EVENT_ID) \
    X(79, PHP_VALUE) \
    X(80, PHP_ADMIN_VALUE)
