/* State of a request that must be hidden from the next one, inside a resident script. */
#ifndef HOWDAH_MODES_RESET_H
#define HOWDAH_MODES_RESET_H

#include "shim.h"

/* Called at the beginning of a request, in this order. */
void shim_reset_status(void);
void shim_reset_file_status(void);
void shim_reset_output_open(void);
void shim_reset_superglobals(void);
void shim_reset_compression_open(void);
void shim_reset_session_open(void);
/* Called at the end of a request: before the client has its response, then after. */
void shim_reset_session_close(void);
void shim_reset_memory_limit(void);
void shim_reset_output_close(void);
void shim_reset_compression_close(void);
void shim_reset_input(void);
void shim_reset_filter(void);
void shim_reset_umask(void);
/* Saves further state at the script's first request; it is restored after each request. */
void shim_reset_remember(void);
void shim_reset_changed(void);

#endif
