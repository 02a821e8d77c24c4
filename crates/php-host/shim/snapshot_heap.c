/* A heap for Zend's memory manager whose chunks survive restores. Chunks that the application has when the snapshot is
 * taken are part of it. Chunks that a request adds come from a reserve that is in no snapshot: the heap forgets them
 * with the restore, and the next request gets the same memory again, with no system call and no page fault. The header
 * of a fresh chunk must be zero: PHP fills it in in parts only. The rest of its old content is nobody's business. */
#include "snapshot_request.h"

#include <string.h>
#include <sys/mman.h>
#include <zend_virtual_cwd.h>

#define CHUNK (2ul * 1024 * 1024) /* ZEND_MM_CHUNK_SIZE, private to zend_alloc.c */
#define CHUNK_HEADER 4096         /* sizeof(zend_mm_chunk), its first page */
#define RESERVE_CHUNKS 24         /* more is mapped for the request and unmapped after it */

static char *reserve;
static uint32_t reserve_used; /* a bit for each chunk; back to its old value with every restore */
static bool reserve_open;     /* since the snapshot */

_Static_assert(RESERVE_CHUNKS < 32, "reserve_used has a bit for each chunk");

static uint32_t bits(size_t first, size_t count) {
    return (uint32_t)((1u << count) - 1) << first;
}

static size_t chunks(size_t size) {
    return (size + CHUNK - 1) / CHUNK;
}

static bool in_reserve(const void *address) {
    return (const char *)address >= reserve && (const char *)address < reserve + RESERVE_CHUNKS * CHUNK;
}

static size_t index_of(const void *address) {
    return (size_t)((const char *)address - reserve) / CHUNK;
}

/* Memory aligned as Zend wants it. */
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
                return memset(reserve + first * CHUNK, 0, CHUNK_HEADER);
            }
        }
    }
    return map_aligned(size, alignment);
}

static void chunk_free(zend_mm_storage *storage, void *chunk, size_t size) {
    (void)storage;
    if (in_reserve(chunk)) {
        reserve_used &= ~bits(index_of(chunk), chunks(size));
    } else if (!snapshot_covers(chunk)) {
        munmap(chunk, size);
    }
    /* Else the next restore wants it. */
}

static bool chunk_truncate(zend_mm_storage *storage, void *chunk, size_t old_size, size_t new_size) {
    (void)storage;
    if (in_reserve(chunk)) {
        size_t keep = chunks(new_size);
        reserve_used &= ~bits(index_of(chunk) + keep, chunks(old_size) - keep);
    } else if (!snapshot_covers(chunk)) {
        munmap((char *)chunk + new_size, old_size - new_size);
    }
    return true;
}

static bool chunk_extend(zend_mm_storage *storage, void *chunk, size_t old_size, size_t new_size) {
    (void)storage;
    if (!in_reserve(chunk)) {
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
    /* USE_ZEND_ALLOC=0 has PHP use malloc(). */
    if (!is_zend_mm()) {
        return;
    }
    reserve = map_aligned(RESERVE_CHUNKS * CHUNK, CHUNK);
    if (reserve == NULL) {
        return;
    }
    zend_mm_heap *heap = zend_mm_startup_ex(&handlers, NULL, 0);
    if (heap != NULL) {
        /* PHP's startup has left this one block in the old heap for the first request to free. */
        virtual_cwd_deactivate();
        zend_mm_set_heap(heap);
        virtual_cwd_activate();
        zend_set_memory_limit((size_t)PG(memory_limit));
    }
}

void shim_snapshot_heap_spare(void) {
    if (reserve != NULL) {
        reserve_open = snapshot_spare(reserve, RESERVE_CHUNKS * CHUNK);
    }
}
