/* Random generators of GnuTLS (libldap, libcurl), libgcrypt (libssh2, libxslt) and NSS, which the boot may have used. A
 * restore resets their state in memory, so each request begins by adding fresh randomness with their own functions. A
 * library that one request loads is not loaded in the next one. Generators that have not been used yet take their seed
 * from the kernel at their first use, and cost nothing here.
 *
 * gcry_create_nonce() has a state that no function reaches. It makes a new one when it finds itself in another process,
 * which libgcrypt learns from getpid(): so its getpid() returns a different number after each restore. */
#include "snapshot/php/other_random.h"

#include "process/import_hooks.h"
#include "shim.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define FRESH_BYTES 32
/* NSS returns single bytes from a block of 32 before it uses added randomness. */
#define NSS_BLOCK 64

/* From the headers of libgcrypt and NSS, which are not needed otherwise. */
#define GCRYCTL_ANY_INITIALIZATION_P 40
#define GCRYPT_BEST_QUALITY 100

/* Takes a seed from the kernel at once; does nothing if this thread has not drawn a number yet. */
static void (*refresh_gnutls)(void);
static unsigned (*add_to_gcrypt)(const void *, size_t, int);
/* Offset of libgcrypt's process ids from the kernel's, which have up to 22 bits. */
#define NO_PROCESS 0x40000000u
static unsigned of_this_restore;
static int (*add_to_nss)(const void *, size_t), (*draw_from_nss)(unsigned char *, int);

/* Children of a request get a different one, too. */
static pid_t process_of_gcrypt(void) {
    return (pid_t)((unsigned)getpid() ^ of_this_restore);
}

static void *loaded(const char *library) {
    return dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
}

void shim_snapshot_other_random_forget(void) {
    void *gnutls = loaded("libgnutls.so.30"), *gcrypt = loaded("libgcrypt.so.20"), *nss = loaded("libnss3.so");
    if (gnutls != NULL) {
        refresh_gnutls = (void (*)(void))dlsym(gnutls, "gnutls_rnd_refresh");
    }
    if (gcrypt != NULL) {
        unsigned (*control)(int, ...) = (unsigned (*)(int, ...))dlsym(gcrypt, "gcry_control");
        if (control != NULL && control(GCRYCTL_ANY_INITIALIZATION_P) != 0) {
            static const import_hook hooks[] = {{"getpid", (void *)process_of_gcrypt}};
            import_hooks_install_in("libgcrypt.so", hooks, sizeof hooks / sizeof *hooks);
            add_to_gcrypt = (unsigned (*)(const void *, size_t, int))dlsym(gcrypt, "gcry_random_add_bytes");
        }
    }
    if (nss != NULL) {
        int (*is_initialized)(void) = (int (*)(void))dlsym(nss, "NSS_IsInitialized");
        if (is_initialized != NULL && is_initialized() != 0) {
            add_to_nss = (int (*)(const void *, size_t))dlsym(nss, "PK11_RandomUpdate");
            draw_from_nss = (int (*)(unsigned char *, int))dlsym(nss, "PK11_GenerateRandom");
        }
    }
}

void shim_snapshot_other_random_renew(void) {
    if (refresh_gnutls != NULL) {
        refresh_gnutls();
    }
    if (add_to_gcrypt == NULL && add_to_nss == NULL) {
        return;
    }
    unsigned char fresh[FRESH_BYTES];
    if (getrandom(fresh, sizeof fresh, 0) != (ssize_t)sizeof fresh) {
        return; /* signals do not interrupt such small reads */
    }
    if (add_to_gcrypt != NULL) {
        add_to_gcrypt(fresh, sizeof fresh, GCRYPT_BEST_QUALITY);
        memcpy(&of_this_restore, fresh, sizeof of_this_restore);
        of_this_restore = (of_this_restore & (NO_PROCESS - 1)) | NO_PROCESS;
    }
    if (add_to_nss != NULL && draw_from_nss != NULL) {
        unsigned char old;
        add_to_nss(fresh, sizeof fresh);
        for (size_t i = 0; i < NSS_BLOCK; i++) {
            draw_from_nss(&old, 1);
        }
    }
}
