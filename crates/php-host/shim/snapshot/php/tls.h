/* Encrypted connections of extensions. */
#ifndef HOWDAH_SNAPSHOT_PHP_TLS_H
#define HOWDAH_SNAPSHOT_PHP_TLS_H

#include "shim.h"

/* Tracks encrypted connections from now on. */
void shim_snapshot_tls_watch(void);
/* Returns the description of an extension's encrypted connection that cannot be restored, or NULL. */
const char *shim_snapshot_refused_connection(void);

/* Writes the address of a socket's peer. False if it is not connected. */
bool shim_snapshot_name_peer(int fd, char *text, size_t size);

#endif
