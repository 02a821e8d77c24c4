/* random_bytes() and random_int() without a system call.
 *
 * Since Linux 6.11 the kernel maps its own random generator into each process (the vDSO's __vdso_getrandom): the same
 * generator as getrandom(2)'s, seeded by the kernel and reseeded when the kernel's own key changes. glibc uses it from
 * 2.41 on, but PHP calls syscall(SYS_getrandom, ...), bypassing glibc's wrapper. So this program defines syscall()
 * itself: the dynamic linker finds it before libc's, for libphp and every library. All other system call numbers, other
 * threads and older kernels get the system call.
 *
 * The generator's state is in this process and protected there. The kernel wipes it in a forked child (and under memory
 * pressure), and a wiped state is seeded again at its next use. Snapshot mode excludes such mappings, so a restore
 * never rewinds it. If a signal handler interrupts its use, the vDSO makes the system call for that handler. */
#include "process/random_source.h"

#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct vgetrandom_opaque_params of linux/random.h (6.11); declared here because the build must not require such new
 * headers. */
typedef struct state_layout {
    uint32_t size, protection, flags, reserved[13];
} state_layout;

typedef ssize_t (*generator)(void *buffer, size_t length, unsigned flags, void *state, size_t state_size);

static generator generate;
static size_t state_size;
/* State of the thread that called shim_random_install(), and of its forked children; NULL in every other thread, since
 * threads must not share a state. Never unmapped. */
static __thread void *state;

#if defined(__x86_64__)
static long system_call(long number, const long a[6]) {
    long result;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long system_call(long number, const long a[6]) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "Howdah runs on x86-64 and aarch64"
#endif

/* syscall(2), the library function. */
__attribute__((visibility("default"))) long syscall(long number, ...) {
    long arguments[6];
    va_list list;
    va_start(list, number);
    /* May read more arguments than the caller has passed: the excess is not used, as in libc's own. */
    for (int i = 0; i < 6; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    long result = number == SYS_getrandom && state != NULL
                      ? generate((void *)arguments[0], (size_t)arguments[1], (unsigned)arguments[2], state, state_size)
                      : system_call(number, arguments);
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

void shim_random_install(void) {
    /* The vDSO is among the loaded objects, under this name on both architectures. */
    void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (vdso == NULL) {
        return;
    }
    generate = (generator)dlsym(vdso, "__vdso_getrandom");
    if (generate == NULL) {
        generate = (generator)dlsym(vdso, "__kernel_getrandom"); /* its name on aarch64 */
    }
    state_layout layout = {0};
    /* A size of ~0 requests the layout. A state must not cross a page boundary, so it must fit into one page. */
    if (generate == NULL || generate(NULL, 0, 0, &layout, ~0ul) != 0 || layout.size > 4096) {
        return;
    }
    void *memory = mmap(NULL, 4096, (int)layout.protection, (int)layout.flags, -1, 0);
    if (memory != MAP_FAILED) {
        state_size = layout.size;
        state = memory;
    }
}
