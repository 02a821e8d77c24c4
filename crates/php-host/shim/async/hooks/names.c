/* Name resolution for coroutines. The C library's can only block, so it runs in a helper thread: one per lookup.
 * Coroutines wait for four at most; further lookups are queued. A thread owns everything it works on: the coroutine
 * that started it may have been cancelled in the meantime, and its stack be gone. Numeric addresses are answered at
 * once.
 *
 * The threads exist in workers of this mode only; the server never forks from those and takes no snapshot of them.
 * Signals go to PHP's thread. */
#include "async/hooks/names.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/descriptors.h"
#include "async/core/timers.h"
#include "async/hooks/waits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_THREADS 4

typedef enum lookup_kind { LOOKUP_ADDRESSES, LOOKUP_NAME } lookup_kind;

typedef struct lookup {
    lookup_kind kind;
    /* One reference each of the thread and the coroutine. */
    atomic_int references;
    int done; /* eventfd */
    int result;
    int system_error;
    /* LOOKUP_ADDRESSES */
    char *node, *service;
    bool has_hints;
    struct addrinfo hints;
    struct addrinfo *found;
    /* LOOKUP_NAME */
    struct sockaddr_storage address;
    socklen_t address_len;
    int flags;
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    bool wants_host, wants_port;
} lookup;

static unsigned running;

static void release(lookup *self) {
    /* The last one must see the other's writes. */
    if (atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (self->found != NULL) {
        freeaddrinfo(self->found);
    }
    close(self->done);
    free(self->node);
    free(self->service);
    free(self);
}

static void resolve(lookup *self) {
    if (self->kind == LOOKUP_ADDRESSES) {
        self->result = getaddrinfo(self->node, self->service, self->has_hints ? &self->hints : NULL, &self->found);
        if (self->result != 0) {
            self->found = NULL;
        }
    } else {
        self->result =
            getnameinfo((struct sockaddr *)&self->address, self->address_len, self->wants_host ? self->host : NULL,
                        self->wants_host ? sizeof self->host : 0, self->wants_port ? self->port : NULL,
                        self->wants_port ? sizeof self->port : 0, self->flags);
    }
    self->system_error = errno;
}

static void *thread_main(void *argument) {
    lookup *self = argument;
    resolve(self);
    uint64_t one = 1;
    /* The write orders the results before the reader's wake-up. */
    if (write(self->done, &one, sizeof one) != sizeof one) {
        abort();
    }
    release(self);
    return NULL;
}

static bool start_thread(lookup *self) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, thread_main, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static lookup *make(lookup_kind kind) {
    lookup *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->kind = kind;
    atomic_init(&self->references, 2);
    self->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->done < 0) {
        free(self);
        return NULL;
    }
    return self;
}

/* Runs the lookup in a thread and waits. False: it could not be started, or the wait was cancelled; then the
 * coroutine's reference has been released. */
static bool run(lookup *self) {
    while (running >= MAX_THREADS) {
        if (coroutine_wait(async_after(UINT64_C(1000000)), "a free resolver") == COROUTINE_CANCELLED) {
            atomic_fetch_sub_explicit(&self->references, 1, memory_order_relaxed);
            release(self);
            return false;
        }
    }
    if (!start_thread(self)) {
        atomic_fetch_sub_explicit(&self->references, 1, memory_order_relaxed);
        release(self);
        return false;
    }
    running++;
    int woken = async_wait_fd(self->done, POLLIN, COROUTINE_FOREVER, "name resolution");
    running--;
    if (woken != COROUTINE_WOKEN) {
        release(self);
        return false;
    }
    return true;
}

static bool is_numeric(const char *node) {
    unsigned char address[sizeof(struct in6_addr)];
    return node == NULL || inet_pton(AF_INET, node, address) == 1 || strchr(node, ':') != NULL;
}

int async_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    if (is_numeric(node) || (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0) || !async_may_wait()) {
        return getaddrinfo(node, service, hints, found);
    }
    lookup *self = make(LOOKUP_ADDRESSES);
    if (self == NULL) {
        return EAI_MEMORY;
    }
    self->node = strdup(node);
    self->service = service != NULL ? strdup(service) : NULL;
    if (hints != NULL) {
        self->has_hints = true;
        self->hints = (struct addrinfo){.ai_flags = hints->ai_flags,
                                        .ai_family = hints->ai_family,
                                        .ai_socktype = hints->ai_socktype,
                                        .ai_protocol = hints->ai_protocol};
    }
    if (!run(self)) {
        errno = ECANCELED;
        return EAI_SYSTEM;
    }
    *found = self->found;
    self->found = NULL;
    int result = self->result;
    int error = self->system_error;
    release(self);
    errno = error;
    return result;
}

int async_getnameinfo(const struct sockaddr *address, socklen_t length, char *host, socklen_t host_len, char *service,
                      socklen_t service_len, int flags) {
    if ((flags & NI_NUMERICHOST) != 0 || length > sizeof(struct sockaddr_storage) || !async_may_wait()) {
        return getnameinfo(address, length, host, host_len, service, service_len, flags);
    }
    lookup *self = make(LOOKUP_NAME);
    if (self == NULL) {
        return EAI_MEMORY;
    }
    memcpy(&self->address, address, length);
    self->address_len = length;
    self->flags = flags;
    self->wants_host = host != NULL && host_len > 0;
    self->wants_port = service != NULL && service_len > 0;
    if (!run(self)) {
        errno = ECANCELED;
        return EAI_SYSTEM;
    }
    int result = self->result;
    if (result == 0 && self->wants_host) {
        result = strlen(self->host) < host_len ? (strcpy(host, self->host), 0) : EAI_OVERFLOW;
    }
    if (result == 0 && self->wants_port) {
        result = strlen(self->port) < service_len ? (strcpy(service, self->port), 0) : EAI_OVERFLOW;
    }
    release(self);
    return result;
}

/* PHP's gethostbyname() and gethostbynamel(): IPv4 addresses of a name. Built on the function above. The caller's
 * buffer gets the address list, then the addresses, then the name. */
int async_gethostbyname_r(const char *name, struct hostent *entry, char *buffer, size_t size, struct hostent **found,
                          int *error) {
    if (is_numeric(name) || !async_may_wait()) {
        return gethostbyname_r(name, entry, buffer, size, found, error);
    }
    *found = NULL;
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    int result = async_getaddrinfo(name, NULL, &hints, &addresses);
    if (result != 0) {
        *error = result == EAI_AGAIN ? TRY_AGAIN : HOST_NOT_FOUND;
        return 0;
    }
    size_t count = 0;
    for (const struct addrinfo *at = addresses; at != NULL; at = at->ai_next) {
        count++;
    }
    size_t list = (count + 2) * sizeof(char *);
    size_t shift = (size_t)(-(uintptr_t)buffer) % sizeof(char *);
    if (shift + list + count * sizeof(struct in_addr) + strlen(name) + 1 > size) {
        freeaddrinfo(addresses);
        *error = NETDB_INTERNAL;
        return ERANGE;
    }
    char **pointers = (char **)(void *)(buffer + shift);
    char *bytes = (char *)(pointers + count + 2);
    size_t i = 0;
    for (const struct addrinfo *at = addresses; at != NULL; at = at->ai_next, i++) {
        pointers[i] = bytes;
        memcpy(bytes, &((const struct sockaddr_in *)(const void *)at->ai_addr)->sin_addr, sizeof(struct in_addr));
        bytes += sizeof(struct in_addr);
    }
    pointers[count] = NULL;
    pointers[count + 1] = NULL;
    freeaddrinfo(addresses);
    entry->h_name = strcpy(bytes, name);
    entry->h_aliases = &pointers[count + 1];
    entry->h_addrtype = AF_INET;
    entry->h_length = sizeof(struct in_addr);
    entry->h_addr_list = pointers;
    *found = entry;
    return 0;
}
