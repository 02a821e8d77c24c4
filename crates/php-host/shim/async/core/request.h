/* A request of async mode, from its beginning to its end. */
#ifndef HOWDAH_ASYNC_CORE_REQUEST_H
#define HOWDAH_ASYNC_CORE_REQUEST_H

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/isolation/ini.h"

struct async_request {
    uint64_t number;
    /* Set until the request begins. */
    const WireRequest *encoded;
    coroutine *main;
    /* Coroutines of this request that have not ended, the main one included. */
    unsigned coroutines;
    bool main_waits_for_others;
    /* Functions to call once the client has its response. */
    zval after_response;
    struct async_ini_change *ini_changes;
    /* The next in the queue of requests that have not begun, or in the list of those kept for reuse. */
    async_request *next;
    /* The superglobals that it has (async/isolation/request_globals.c). */
    uint8_t superglobals;
    /* It holds a connection for as long as a client stays, and does not count in the admission window. */
    bool stays;
    /* Number of pauses before it began (admission.c). */
    uint32_t pauses;
    /* PHP's globals of this request while another one's are installed. */
    unsigned char image[];
};

/* Creates a request that the server has sent; it begins when admission lets it. False without memory. */
bool async_request_start(const WireRequest *encoded, uint64_t number);
/* Starts its coroutine. */
void async_request_begin(async_request *request);
/* Called when the request's deadline has passed. */
void async_request_cancel(uint64_t number, const char *reason);
/* Sets what ends the connections that a request holds, at its end. `failed`: by a fatal error. */
void async_request_ends_connections(void (*end)(const async_request *request, bool failed));
/* It goes on after its response for as long as a client stays. */
void async_request_stays(async_request *request);
uint32_t async_request_count(void);
/* Writes output of a coroutine other than the main one into the main one's buffers. False if the output is not to go
 * there: the caller sends it. */
bool async_output_to_main(const char *data, size_t length);
/* Sets the function that runs for each request. */
void async_request_handler(zend_fcall_info *function, zend_fcall_info_cache *cache);

#endif
