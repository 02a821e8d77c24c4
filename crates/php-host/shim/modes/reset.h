/* State of a request that the next one must not find, inside a script that lives on. */
#ifndef HOWDAH_MODES_RESET_H
#define HOWDAH_MODES_RESET_H

#include "shim.h"

/* At the beginning of a request, in this order. */
void shim_reset_status(void);
void shim_reset_file_status(void);
void shim_reset_output_open(void);
void shim_reset_superglobals(void);
void shim_reset_compression_open(void);
void shim_reset_session_open(void);
/* At the end of a request: before the client has its response, then after. */
void shim_reset_session_close(void);
void shim_reset_memory_limit(void);
void shim_reset_output_close(void);
void shim_reset_compression_close(void);
void shim_reset_input(void);
void shim_reset_filter(void);
void shim_reset_umask(void);
/* Remembers further state, which is restored to that at the script's first request. */
void shim_reset_remember(void);
void shim_reset_changed(void);

#endif
