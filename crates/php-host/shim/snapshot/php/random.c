/* Random numbers after a restore. A restore resets a generator whose state is in memory, so two requests would draw the
 * same numbers: session ids, tokens, keys. That must never happen.
 *
 * lcg_value() is seeded in each request. Other generators take a seed from the kernel at their first use, so they are
 * left "not used yet" in the snapshot and cost nothing in a request that draws no numbers: PHP's own, and OpenSSL's,
 * whose generators are advanced until the next output needs a reseeding. Engine objects of ext/random that the
 * application has created without a seed are seeded again at the start of each request. random_bytes() and random_int()
 * use the kernel's generator, whose state in this process (process/random_source.c) no restore touches. */
#include "snapshot/php/random.h"

#include "shim.h"
#include "snapshot/engine/snapshot.h"
#include "snapshot/php/other_random.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/random.h>

/* Number of outputs between two reseedings of OpenSSL's generators, after the first. */
#define OPENSSL_OUTPUTS 32
#define OPENSSL_UNSIGNED 2 /* OSSL_PARAM_UNSIGNED_INTEGER */

/* OSSL_PARAM of OpenSSL 3, whose headers are not needed otherwise. */
typedef struct openssl_param {
    const char *key;
    unsigned type;
    void *data;
    size_t size, returned;
} openssl_param;

typedef struct evp_rand_ctx evp_rand_ctx;

#define MAX_ENGINES 64
#define ENGINE_CLASSES 3
static const char *const engine_classes[ENGINE_CLASSES] = {
    "random\\engine\\mt19937",
    "random\\engine\\pcgoneseq128xslrr64",
    "random\\engine\\xoshiro256starstar",
};
static zend_class_entry *engines[ENGINE_CLASSES];
static zif_handler constructors[ENGINE_CLASSES], unserializers[ENGINE_CLASSES];
/* Objects whose seed the application has chosen. */
static HashTable chosen;
static bool watching;

static zend_object *unseeded[MAX_ENGINES];
static size_t n_unseeded;

/* Seeds for lcg_value(), consumed in order. In the engine's memory, so that none is used twice. */
#define LCG_SEEDS 512
typedef struct lcg_seeds {
    size_t left;
    uint32_t seeds[LCG_SEEDS][2];
} lcg_seeds;
static lcg_seeds *seeds;

/* For OpenSSL older than 3, or a library with its interface: seeds at each request. */
static int (*reseed_eagerly)(void);

static size_t class_index(const zend_object *object) {
    for (size_t i = 0; i < ENGINE_CLASSES; i++) {
        if (engines[i] != NULL && instanceof_function(object->ce, engines[i])) {
            return i;
        }
    }
    return ENGINE_CLASSES;
}

static void note_choice(zend_object *object, bool own_state) {
    zend_ulong key = (zend_ulong)(uintptr_t)object;
    if (own_state) {
        zend_hash_index_add_empty_element(&chosen, key);
    } else {
        zend_hash_index_del(&chosen, key);
    }
}

static ZEND_NAMED_FUNCTION(watched_constructor) {
    const zval *seed = ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
    zend_object *object = Z_OBJ_P(ZEND_THIS);
    note_choice(object, seed != NULL && Z_TYPE_P(seed) != IS_NULL && !Z_ISUNDEF_P(seed));
    constructors[class_index(object)](INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_NAMED_FUNCTION(watched_unserialize) {
    zend_object *object = Z_OBJ_P(ZEND_THIS);
    note_choice(object, true);
    unserializers[class_index(object)](INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static zif_handler watch_method(zend_class_entry *class, const char *name, zif_handler handler) {
    zend_function *method = zend_hash_str_find_ptr(&class->function_table, name, strlen(name));
    if (method == NULL || method->type != ZEND_INTERNAL_FUNCTION) {
        return NULL;
    }
    zif_handler original = method->internal_function.handler;
    method->internal_function.handler = handler;
    return original;
}

void shim_snapshot_random_watch(void) {
    zend_hash_init(&chosen, 8, NULL, NULL, 1);
    for (size_t i = 0; i < ENGINE_CLASSES; i++) {
        engines[i] = zend_hash_str_find_ptr(CG(class_table), engine_classes[i], strlen(engine_classes[i]));
        if (engines[i] != NULL) {
            constructors[i] = watch_method(engines[i], "__construct", watched_constructor);
            unserializers[i] = watch_method(engines[i], "__unserialize", watched_unserialize);
            watching = true;
        }
    }
}

static void list_engines(void) {
    n_unseeded = 0;
    for (uint32_t i = 1; watching && i < EG(objects_store).top; i++) {
        zend_object *object = EG(objects_store).object_buckets[i];
        if (!IS_OBJ_VALID(object) || class_index(object) == ENGINE_CLASSES ||
            zend_hash_index_exists(&chosen, (zend_ulong)(uintptr_t)object)) {
            continue;
        }
        if (n_unseeded == MAX_ENGINES) {
            snapshot_spoil("the application made too many random number engines at boot");
            return;
        }
        unseeded[n_unseeded++] = object;
    }
}

typedef int set_params(evp_rand_ctx *, const openssl_param *);
typedef int generate_bytes(evp_rand_ctx *, unsigned char *, size_t, unsigned, int, const unsigned char *, size_t);

static bool set_outputs(evp_rand_ctx *generator, set_params *set, unsigned outputs) {
    const openssl_param params[] = {
        {"reseed_requests", OPENSSL_UNSIGNED, &outputs, sizeof outputs, (size_t)-1},
        {NULL, 0, NULL, 0, 0},
    };
    return set(generator, params) == 1;
}

/* Advances one generator of OpenSSL to the end of its outputs: the next output needs fresh randomness from its parent,
 * and at the end of that chain from the kernel. */
static bool force_reseed(evp_rand_ctx *generator, set_params *set, generate_bytes *generate) {
    if (generator == NULL || !set_outputs(generator, set, 1u << 20)) {
        return false;
    }
    /* Its age may make the first of these reseed it, which restarts the count. */
    for (unsigned i = 0; i < OPENSSL_OUTPUTS + 2; i++) {
        unsigned char byte;
        if (generate(generator, &byte, 1, 0, 0, NULL, 0) != 1) {
            return false;
        }
    }
    return set_outputs(generator, set, OPENSSL_OUTPUTS);
}

static void forget_openssl(void) {
    void *library = dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) {
        library = dlopen("libcrypto.so.1.1", RTLD_LAZY | RTLD_NOLOAD);
    }
    if (library == NULL) {
        return;
    }
    set_params *set = (set_params *)dlsym(library, "EVP_RAND_CTX_set_params");
    generate_bytes *generate = (generate_bytes *)dlsym(library, "EVP_RAND_generate");
    typedef evp_rand_ctx *get_generator(void *);
    get_generator *public = (get_generator *)dlsym(library, "RAND_get0_public");
    get_generator *private = (get_generator *)dlsym(library, "RAND_get0_private");
    get_generator *primary = (get_generator *)dlsym(library, "RAND_get0_primary");
    bool done = set != NULL && generate != NULL && public != NULL && private != NULL && primary != NULL &&
                force_reseed(public(NULL), set, generate) && force_reseed(private(NULL), set, generate) &&
                force_reseed(primary(NULL), set, generate);
    if (!done) {
        reseed_eagerly = (int (*)(void))dlsym(library, "RAND_poll");
        if (reseed_eagerly == NULL) {
            snapshot_spoil("cannot ensure that OpenSSL's random generator repeats nothing");
        }
    }
}

static void seed_combined_lcg(void) {
    if (seeds->left == 0) {
        if (getrandom(seeds->seeds, sizeof seeds->seeds, 0) != (ssize_t)sizeof seeds->seeds) {
            return; /* falls back to PHP's own seed */
        }
        seeds->left = LCG_SEEDS;
    }
    const uint32_t *seed = seeds->seeds[--seeds->left];
    shim_compat_seed_combined_lcg(seed[0], seed[1]);
}

/* Resets a library's state in this thread to its initial state. libuuid keeps the clock and the sequence number of its
 * last time-based UUID there, and a supply of UUIDs that uuidd has reserved for it: from the same state, all workers
 * would continue with the same ones. In the state "not used yet" it draws a new sequence number, or reads the one in
 * the system's file. */
static int forget_uuids(struct dl_phdr_info *library, size_t size, void *unused) {
    (void)size;
    (void)unused;
    const char *name = strrchr(library->dlpi_name, '/');
    if (name == NULL || strncmp(name, "/libuuid.so", sizeof "/libuuid.so" - 1) != 0 || library->dlpi_tls_data == NULL) {
        return 0;
    }
    for (size_t i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
        if (segment->p_type == PT_TLS) {
            char *own = library->dlpi_tls_data;
            memcpy(own, (const char *)library->dlpi_addr + segment->p_vaddr, segment->p_filesz);
            memset(own + segment->p_filesz, 0, segment->p_memsz - segment->p_filesz);
        }
    }
    return 0;
}

/* gmp_random_bits() and similar functions: the extension frees its generator at the end of each request. */
static void forget_gmp(void) {
    zend_module_entry *gmp = shim_extension("gmp");
    if (gmp != NULL && gmp->request_shutdown_func != NULL) {
        gmp->request_shutdown_func(gmp->type, gmp->module_number);
    }
}

void shim_snapshot_random_forget(void) {
    dl_iterate_phdr(forget_uuids, NULL);
    forget_gmp();
    seeds = snapshot_lasting_memory(sizeof *seeds);
    if (seeds == NULL) {
        snapshot_spoil("no memory for random seeds");
    }
    shim_compat_forget_random_state();
    list_engines();
    forget_openssl();
    shim_snapshot_other_random_forget();
}

void shim_snapshot_random_forked(void) {
    seeds->left = 0;
}

void shim_snapshot_random_renew(void) {
    seed_combined_lcg();
    if (reseed_eagerly != NULL) {
        reseed_eagerly();
    }
    shim_snapshot_other_random_renew();
    for (size_t i = 0; i < n_unseeded; i++) {
        zend_object *object = unseeded[i];
        zend_call_known_instance_method_with_0_params(engines[class_index(object)]->constructor, object, NULL);
    }
}

void shim_snapshot_random_apart(void) {
    uint32_t seed[2];
    shim_compat_forget_random_state();
    if (getrandom(seed, sizeof seed, 0) == (ssize_t)sizeof seed) {
        shim_compat_seed_combined_lcg(seed[0], seed[1]);
    }
}
