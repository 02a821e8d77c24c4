/* A heap for Zend's memory manager whose chunks survive restores. The application's chunks at the snapshot are part of
 * it. Chunks that a request adds come from a reserve that is in no snapshot: a restore makes the heap forget them, and
 * the next request gets the same memory again, without a system call or a page fault. The header of a fresh chunk must
 * be zero, because PHP fills only parts of it. The rest of its old content does not matter. */
#include "snapshot/php/heap.h"

#include "shim.h"
#include "snapshot/engine/snapshot.h"

#include <string.h>
#include <sys/mman.h>
#include <zend_virtual_cwd.h>

#define CHUNK (2ul * 1024 * 1024) /* ZEND_MM_CHUNK_SIZE, private to zend_alloc.c */
#define BLOCK 4096ul              /* ZEND_MM_PAGE_SIZE; the first block of a chunk is sizeof(zend_mm_chunk) */
#define RESERVE_CHUNKS 24         /* if it is used up, memory is mapped for the request and unmapped after it */

static zend_mm_heap *heap;
static char *reserve;
static uint32_t reserve_used; /* a bit for each chunk; every restore resets it */
static bool reserve_open;     /* true since the snapshot */

/* The chunk that was mapped last, NULL when it was unmapped. Watched while the application's heap is filled up. */
static const char *newest;
static void *volatile kept_for_good;

_Static_assert(RESERVE_CHUNKS < 32, "reserve_used has a bit for each chunk");

static uint32_t bits(size_t first, size_t count) {
    return (uint32_t)((1u << count) - 1) << first;
}

static size_t chunks(size_t size) {
    return (size + CHUNK - 1) / CHUNK;
}

static bool is_in_reserve(const void *address) {
    return (const char *)address >= reserve && (const char *)address < reserve + RESERVE_CHUNKS * CHUNK;
}

static size_t index_of(const void *address) {
    return (size_t)((const char *)address - reserve) / CHUNK;
}

/* Maps memory aligned as Zend requires. */
static void *map_aligned(size_t size, size_t alignment) {
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    if (((uintptr_t)memory & (alignment - 1)) == 0) {
        return memory;
    }
    munmap(memory, size);
    memory = mmap(NULL, size + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    char *start = (char *)(((uintptr_t)memory + alignment - 1) & ~(alignment - 1));
    if (start > memory) {
        munmap(memory, (size_t)(start - memory));
    }
    if (start + size < memory + size + alignment) {
        munmap(start + size, (size_t)(memory + alignment - start));
    }
    return start;
}

static void *chunk_alloc(zend_mm_storage *storage, size_t size, size_t alignment) {
    (void)storage;
    size_t count = chunks(size);
    if (reserve_open && count <= RESERVE_CHUNKS && alignment <= CHUNK) {
        for (size_t first = 0; first + count <= RESERVE_CHUNKS; first++) {
            if ((reserve_used & bits(first, count)) == 0) {
                reserve_used |= bits(first, count);
                return memset(reserve + first * CHUNK, 0, BLOCK);
            }
        }
    }
    char *memory = map_aligned(size, alignment);
    newest = memory;
    return memory;
}

static void chunk_free(zend_mm_storage *storage, void *chunk, size_t size) {
    (void)storage;
    if (is_in_reserve(chunk)) {
        reserve_used &= ~bits(index_of(chunk), chunks(size));
    } else if (!snapshot_covers(chunk)) {
        if (chunk == newest) {
            newest = NULL;
        }
        munmap(chunk, size);
    }
    /* Otherwise the chunk is part of the snapshot, and the next restore needs it. */
}

static bool chunk_truncate(zend_mm_storage *storage, void *chunk, size_t old_size, size_t new_size) {
    (void)storage;
    if (is_in_reserve(chunk)) {
        size_t keep = chunks(new_size);
        reserve_used &= ~bits(index_of(chunk) + keep, chunks(old_size) - keep);
    } else if (!snapshot_covers(chunk)) {
        munmap((char *)chunk + new_size, old_size - new_size);
    }
    return true;
}

static bool chunk_extend(zend_mm_storage *storage, void *chunk, size_t old_size, size_t new_size) {
    (void)storage;
    if (!is_in_reserve(chunk)) {
        return false;
    }
    size_t first = index_of(chunk) + chunks(old_size);
    size_t count = chunks(new_size) - chunks(old_size);
    if (first + count > RESERVE_CHUNKS || (reserve_used & bits(first, count)) != 0) {
        return false;
    }
    reserve_used |= bits(first, count);
    return true;
}

static const zend_mm_handlers handlers = {chunk_alloc, chunk_free, chunk_truncate, chunk_extend};

void shim_snapshot_heap_install(void) {
    /* With USE_ZEND_ALLOC=0, PHP uses malloc(). */
    if (!is_zend_mm()) {
        return;
    }
    reserve = map_aligned(RESERVE_CHUNKS * CHUNK, CHUNK);
    if (reserve == NULL) {
        return;
    }
    heap = zend_mm_startup_ex(&handlers, NULL, 0);
    if (heap != NULL) {
        /* PHP's startup has left this one block in the old heap, for the first request to free. */
        virtual_cwd_deactivate();
        zend_mm_set_heap(heap);
        virtual_cwd_activate();
        zend_set_memory_limit((size_t)PG(memory_limit));
    }
}

/* The garbage collector records each object that has lost a reference, in a buffer and in the object itself, once until
 * it has checked it. An application's services are among these objects in every request, so on a snapshot with an empty
 * buffer each request would write to all of them again. Hence those that were recorded during the warm-up are recorded
 * again after the collection. */
void shim_snapshot_heap_collect(void) {
    const zend_objects_store *store = &EG(objects_store);
    const uint32_t top = store->top;
    zend_object **noted = safe_emalloc(top, sizeof *noted, 0);
    for (uint32_t i = 1; i < top; i++) {
        zend_object *object = store->object_buckets[i];
        noted[i] = IS_OBJ_VALID(object) && GC_INFO(object) != 0 ? object : NULL;
    }
    gc_collect_cycles();
    for (uint32_t i = 1; i < top; i++) {
        /* Garbage is gone, and its slot may hold another object. */
        if (noted[i] != NULL && store->object_buckets[i] == noted[i] && GC_INFO(noted[i]) == 0) {
            gc_possible_root((zend_refcounted *)noted[i]);
        }
    }
    efree(noted);
}

static bool is_in_newest_chunk(const void *address) {
    return newest != NULL && (const char *)address >= newest && (const char *)address < newest + CHUNK;
}

/* Allocates until the block comes from a chunk that was mapped for it: no other chunk has a free block of that size. */
static void *allocate_new_chunk(size_t size) {
    void *block;
    while (!is_in_newest_chunk(block = emalloc(size))) {
        memset(block, 0, size);
    }
    return block;
}

/* Allocates everything that is free in the application's chunks, permanently. Requests then allocate from the reserve,
 * which needs no restoring, and not between the application's own data, which would have to be restored page by page.
 * The free memory is cleared, so that it takes no room in the snapshot. */
static void fill_free_blocks(void) {
    /* Without 8: Zend's counter of a run's free slots is too small for the 512 of that size, so it never returns
     * one. */
    static const size_t sizes[] = {BLOCK, 16,  24,  32,  40,  48,  56,  64,  80,   96,   112,  128,  160,  192,  224,
                                   256,   320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    void *newest_blocks[SIZES];
    newest = NULL;
    zend_mm_gc(heap);
    for (size_t i = 0; i < SIZES; i++) {
        newest_blocks[i] = allocate_new_chunk(sizes[i]);
    }
    for (size_t i = 0; i < SIZES; i++) {
        efree(newest_blocks[i]);
    }
    zend_mm_gc(heap);
    if (newest != NULL) {
        /* Zend has cached the chunk instead of returning it. Storing the pointer keeps the compiler from dropping the
         * allocation. */
        kept_for_good = emalloc(CHUNK - BLOCK);
    }
}

void shim_snapshot_heap_spare(void) {
    if (heap == NULL) {
        return;
    }
    size_t limit = (size_t)PG(memory_limit);
    /* "No limit" is the largest number, so the sum may overflow. */
    zend_set_memory_limit(limit + 4 * CHUNK > limit ? limit + 4 * CHUNK : limit);
    fill_free_blocks();
    zend_set_memory_limit((size_t)PG(memory_limit));
    reserve_open = snapshot_spare(reserve, RESERVE_CHUNKS * CHUNK);
    /* PHP's stack above its top is not read again. */
    snapshot_loose(EG(vm_stack_top), (char *)EG(vm_stack_end) - (char *)EG(vm_stack_top));
}
