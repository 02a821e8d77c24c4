/* Encrypted connections of extensions. */
#ifndef HOWDAH_SNAPSHOT_PHP_TLS_H
#define HOWDAH_SNAPSHOT_PHP_TLS_H

#include "shim.h"

/* From now on encrypted connections are known. */
void shim_snapshot_tls_watch(void);
/* An extension's encrypted connection that cannot be restored, as text, or NULL. */
const char *shim_snapshot_refused_connection(void);

/* The peer of a socket. False if it is not connected. */
bool shim_snapshot_name_peer(int fd, char *text, size_t size);

#endif
