/* A request of async mode, from its beginning to its end. */
#ifndef HOWDAH_ASYNC_CORE_REQUEST_H
#define HOWDAH_ASYNC_CORE_REQUEST_H

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/isolation/ini.h"

struct async_request {
    uint64_t number;
    /* Until it begins. */
    const WireRequest *encoded;
    coroutine *main;
    /* Coroutines of this request that have not ended, the main one included. */
    unsigned coroutines;
    bool main_waits_for_others;
    /* Functions to call once the client has its response. */
    zval after_response;
    struct async_ini_change *ini_changes;
    /* In the line of those that have not begun, or of those to be used again. */
    async_request *next;
    /* Superglobals that it has (async/isolation/request_globals.c). */
    uint8_t superglobals;
    /* Pauses before it began (admission.c). */
    uint32_t pauses;
    /* The globals of PHP that are this request's, while another one's are in place. */
    unsigned char image[];
};

/* Opens a request that the server has sent; it begins when it is its turn. False without memory. */
bool async_request_start(const WireRequest *encoded, uint64_t number);
/* Starts its coroutine. */
void async_request_begin(async_request *request);
/* The client or the server gave the request up. */
void async_request_cancel(uint64_t number, const char *reason);
uint32_t async_request_count(void);
/* Output of another coroutine than the main one goes into the main one's buffers. False: the caller prints for the main
 * one. */
bool async_output_to_main(const char *data, size_t length);
/* The function that is run for each request. */
void async_request_handler(zend_fcall_info *function, zend_fcall_info_cache *cache);

#endif
