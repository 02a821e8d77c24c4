/* Finds extensions' encrypted connections that exist when the snapshot is taken. Both ends of such a connection count
 * what was sent, so restoring one end's memory breaks it; and no counter value may be used twice with a key. PHP's own
 * streams can be identified (request_end.c); libpq, libcurl and others do not report theirs. But nearly all of them use
 * OpenSSL, which lets a program attach data to each of its connections, and calls the program when one is created and
 * when one is freed. Debian's libldap uses GnuTLS: a library that imports GnuTLS's functions for that calls those below
 * instead. Connections of other libraries are detected by received data that no tap has seen
 * (snapshot/sessions/tap.c). */
#include "snapshot/php/tls.h"

#include "process/import_hooks.h"
#include "shim.h"
#include "snapshot/engine/snapshot.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MAX_CONNECTIONS 256

/* OpenSSL's, whose headers are not needed otherwise. */
#define CRYPTO_EX_INDEX_SSL 0
typedef struct ssl_st SSL;
typedef void data_event(void *parent, void *data, void *all_data, int index, long number, void *argument);
typedef int data_index(int class, long number, void *argument, data_event *made, void *copied, data_event *freed);

typedef struct connection {
    const void *made;
    bool by_openssl;
} connection;

static connection connections[MAX_CONNECTIONS];
static size_t n_connections;
/* Extensions may have threads before the snapshot is requested. It is refused then, but they must not corrupt this
 * list. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *find(const char *const libraries[2], const char *name) {
    for (size_t i = 0; i < 2; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL) {
            return dlsym(library, name);
        }
    }
    return NULL;
}

static void remember(const void *made, bool by_openssl) {
    pthread_mutex_lock(&lock);
    if (snapshot_taken()) {
        /* It belongs to a request. */
    } else if (n_connections < MAX_CONNECTIONS) {
        connections[n_connections++] = (connection){made, by_openssl};
    } else {
        snapshot_spoil("more encrypted connections were opened at boot than can be watched");
    }
    pthread_mutex_unlock(&lock);
}

static void forget(const void *made) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_connections; i++) {
        if (connections[i].made == made) {
            connections[i] = connections[--n_connections];
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void made_by_openssl(void *parent, void *data, void *all_data, int index, long number, void *argument) {
    remember(parent, true);
}

static void freed_by_openssl(void *parent, void *data, void *all_data, int index, long number, void *argument) {
    forget(parent);
}

/* GnuTLS's, likewise. */
typedef struct gnutls_session *gnutls_session;
static int (*real_gnutls_init)(gnutls_session *, unsigned);
static void (*real_gnutls_deinit)(gnutls_session);

static int watched_gnutls_init(gnutls_session *session, unsigned flags) {
    int result = real_gnutls_init(session, flags);
    if (result == 0) {
        remember(*session, false);
    }
    return result;
}

static void watched_gnutls_deinit(gnutls_session session) {
    forget(session);
    real_gnutls_deinit(session);
}

static void watch_gnutls(void) {
    static const char *const libgnutls[] = {"libgnutls.so.30", "libgnutls.so"};
    static const import_hook hooks[] = {
        {"gnutls_init", (void *)watched_gnutls_init},
        {"gnutls_deinit", (void *)watched_gnutls_deinit},
    };
    real_gnutls_init = (int (*)(gnutls_session *, unsigned))find(libgnutls, "gnutls_init");
    real_gnutls_deinit = (void (*)(gnutls_session))find(libgnutls, "gnutls_deinit");
    if (real_gnutls_init != NULL && real_gnutls_deinit != NULL) {
        import_hooks_install_in("", hooks, sizeof hooks / sizeof *hooks);
    }
}

void shim_snapshot_tls_watch(void) {
    watch_gnutls();
    static const char *const libcrypto[] = {"libcrypto.so.3", "libcrypto.so.1.1"};
    data_index *attach = (data_index *)find(libcrypto, "CRYPTO_get_ex_new_index");
    if (attach != NULL) {
        attach(CRYPTO_EX_INDEX_SSL, 0, NULL, made_by_openssl, NULL, freed_by_openssl);
    }
}

bool shim_snapshot_name_peer(int fd, char *text, size_t size) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
        struct sockaddr_storage space;
    } peer = {0};
    socklen_t length = sizeof peer;
    if (fd < 0 || getpeername(fd, &peer.any, &length) != 0) {
        return false;
    }
    char address[INET6_ADDRSTRLEN] = "?";
    switch (peer.any.sa_family) {
    case AF_INET:
        inet_ntop(AF_INET, &peer.v4.sin_addr, address, sizeof address);
        (snprintf)(text, size, "%s:%u", address, ntohs(peer.v4.sin_port));
        return true;
    case AF_INET6:
        inet_ntop(AF_INET6, &peer.v6.sin6_addr, address, sizeof address);
        (snprintf)(text, size, "[%s]:%u", address, ntohs(peer.v6.sin6_port));
        return true;
    default:
        (snprintf)(text, size, "%s", *peer.local.sun_path != '\0' ? peer.local.sun_path : "a local socket");
        return true;
    }
}

/* libcurl reads from its sockets itself, so OpenSSL does not know them. */
static void list_all_peers(char *text, size_t size) {
    size_t length = (size_t)(snprintf)(text, size, "one of");
    for (int fd = 3; fd < 1024 && length < size; fd++) {
        char peer[64];
        if (shim_snapshot_name_peer(fd, peer, sizeof peer) && strpbrk(peer, ".:") != NULL) {
            length += (size_t)(snprintf)(text + length, size - length, " %s", peer);
        }
    }
}

const char *shim_snapshot_refused_connection(void) {
    static char text[200];
    static const char *const libssl[] = {"libssl.so.3", "libssl.so.1.1"};
    int (*descriptor)(const SSL *) = (int (*)(const SSL *))find(libssl, "SSL_get_fd");
    for (size_t i = 0; i < n_connections; i++) {
        char peer[120];
        int fd = descriptor != NULL && connections[i].by_openssl ? descriptor(connections[i].made) : -1;
        if (!shim_snapshot_name_peer(fd, peer, sizeof peer)) {
            if (fd >= 0) {
                continue; /* not connected, or no longer */
            }
            list_all_peers(peer, sizeof peer);
        }
        (snprintf)(text, sizeof text, "the encrypted connection to %s", peer);
        return text;
    }
    return NULL;
}
