/* Installs the shim's functions in the import tables of the libraries through which PHP code performs I/O: libphp
 * itself, PHP's extensions, and the client libraries these use. A library calls libc through a slot of its global
 * offset table (ELF relocations of the kinds JUMP_SLOT and GLOB_DAT). Only that slot is changed, so other libraries,
 * this program and other threads are not affected, and stock drivers need no change. Source of the layout: the ELF
 * specification, elf(5), and dl_iterate_phdr(3).
 *
 * A library that is loaded later (dlopen in a request) keeps libc's functions. */
#include "process/import_hooks.h"

#include "shim.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define KIND_JUMP_SLOT R_X86_64_JUMP_SLOT
#define KIND_GLOB_DAT R_X86_64_GLOB_DAT
#elif defined(__aarch64__)
#define KIND_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define KIND_GLOB_DAT R_AARCH64_GLOB_DAT
#else
#error "import_hooks.c knows the relocations of x86-64 and aarch64"
#endif

/* Client libraries, by the prefix of their file name. Without libldap, which holds a lock while it waits. */
static const char *const client_libraries[] = {"libphp",       "libpq.so",    "libcurl",    "libsqlite3", "libssh2",
                                               "libmemcached", "librabbitmq", "libmariadb", "libhiredis"};

static bool begins(const char *name, const char *beginning) {
    return strncmp(name, beginning, strlen(beginning)) == 0;
}

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_hooked_library(const char *path) {
    const char *name = file_name(path);
    for (size_t i = 0; i < sizeof client_libraries / sizeof *client_libraries; i++) {
        if (begins(name, client_libraries[i])) {
            return true;
        }
    }
    /* A debugger talks to its user, not to a service, and blocks the process while it does. */
    if (begins(name, "xdebug") || begins(name, "opcache")) {
        return false;
    }
    const char *directory = PG(extension_dir);
    return directory != NULL && *directory != '\0' && begins(path, directory);
}

typedef struct hook_list {
    const import_hook *hooks;
    size_t count;
    const char *beginning; /* NULL: the libraries through which PHP code performs I/O */
} hook_list;

static void *hook_for(const hook_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->hooks[i].name, name) == 0) {
            return list->hooks[i].function;
        }
    }
    return NULL;
}

typedef struct library {
    ElfW(Addr) base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t sizes[2];
    /* The range that the loader has made read-only after relocation. */
    uintptr_t protected_from, protected_to;
} library;

/* Most entries contain addresses that the loader has made absolute. */
static const void *address_in(const library *lib, ElfW(Addr) value) {
    return (const void *)(value < lib->base ? value + lib->base : value);
}

static void read_dynamic(library *lib, const ElfW(Dyn) * entry) {
    for (; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB:
            lib->symbols = address_in(lib, entry->d_un.d_ptr);
            break;
        case DT_STRTAB:
            lib->strings = address_in(lib, entry->d_un.d_ptr);
            break;
        case DT_JMPREL:
            lib->tables[0] = address_in(lib, entry->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            lib->sizes[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELA:
            lib->tables[1] = address_in(lib, entry->d_un.d_ptr);
            break;
        case DT_RELASZ:
            lib->sizes[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        default:
            break;
        }
    }
}

static void write_slot(const library *lib, void **slot, void *function) {
    uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)slot & ~(page_size - 1);
    bool is_protected = (uintptr_t)slot >= lib->protected_from && (uintptr_t)slot < lib->protected_to;
    if (is_protected && mprotect((void *)page, page_size, PROT_READ | PROT_WRITE) != 0) {
        return;
    }
    *slot = function;
    if (is_protected) {
        mprotect((void *)page, page_size, PROT_READ);
    }
}

static int hook_library(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    const hook_list *list = argument;
    const char *path = info->dlpi_name, *beginning = list->beginning;
    if (!(beginning != NULL ? begins(file_name(path), beginning) : is_hooked_library(path))) {
        return 0;
    }
    library lib = {.base = info->dlpi_addr};
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)(lib.base + header->p_vaddr);
        } else if (header->p_type == PT_GNU_RELRO) {
            uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
            lib.protected_from = (lib.base + header->p_vaddr) & ~(page_size - 1);
            lib.protected_to = (lib.base + header->p_vaddr + header->p_memsz) & ~(page_size - 1);
        }
    }
    if (dynamic == NULL) {
        return 0;
    }
    read_dynamic(&lib, dynamic);
    for (int table = 0; table < 2; table++) {
        for (size_t i = 0; lib.tables[table] != NULL && i < lib.sizes[table]; i++) {
            const ElfW(Rela) *relocation = &lib.tables[table][i];
            uint32_t kind = (uint32_t)ELF64_R_TYPE(relocation->r_info);
            if (kind != KIND_JUMP_SLOT && kind != KIND_GLOB_DAT) {
                continue;
            }
            void *function = hook_for(list, lib.strings + lib.symbols[ELF64_R_SYM(relocation->r_info)].st_name);
            if (function != NULL) {
                write_slot(&lib, (void **)(lib.base + relocation->r_offset), function);
            }
        }
    }
    return 0;
}

void import_hooks_install(const import_hook *hooks, size_t count) {
    hook_list list = {hooks, count, NULL};
    dl_iterate_phdr(hook_library, &list);
}

void import_hooks_install_in(const char *beginning, const import_hook *hooks, size_t count) {
    hook_list list = {hooks, count, beginning};
    dl_iterate_phdr(hook_library, &list);
}
