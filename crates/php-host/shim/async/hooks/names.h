/* Replaces libc's name resolution. See hooks.h. */
#ifndef HOWDAH_ASYNC_HOOKS_NAMES_H
#define HOWDAH_ASYNC_HOOKS_NAMES_H

#include "shim.h"

#include <netdb.h>
#include <sys/socket.h>

int async_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found);
int async_getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_len, char *service,
                      socklen_t service_len, int flags);
int async_gethostbyname_r(const char *name, struct hostent *entry, char *buffer, size_t size, struct hostent **found,
                          int *error);

#endif
