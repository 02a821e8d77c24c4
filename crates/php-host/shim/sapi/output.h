/* Sends the response: head, body, flush. */
#ifndef HOWDAH_SAPI_OUTPUT_H
#define HOWDAH_SAPI_OUTPUT_H

#include "shim.h"

size_t shim_sapi_write(const char *data, size_t length);
void shim_sapi_flush(void *server_context);
int shim_sapi_send_headers(sapi_headers_struct *headers);
/* Sends the headers set so far as an informational response. */
int shim_send_interim(unsigned status);

#endif
