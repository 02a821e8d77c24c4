/* Part of howdah-php only in `make coverage`: writes gcov's counters where PHP's processes would lose them. The linker
 * makes callers of the wrapped functions call these. */

/* libgcov's __gcov_dump(). LLVM's runtime has another function of that name, and the linker chooses that one. */
extern struct gcov_root __gcov_root;
extern void __gcov_dump_one(struct gcov_root *root);

extern void __llvm_profile_set_filename(const char *name);
extern int __llvm_profile_write_file(void);

/* The server takes the name from LLVM_PROFILE_FILE, which PHP's environment may lack. */
__attribute__((constructor)) static void name_profile(void) {
    __llvm_profile_set_filename(COVERAGE_PROFILE);
}

static void write_counters(void) {
    __gcov_dump_one(&__gcov_root);
    __llvm_profile_write_file();
}

__attribute__((noreturn)) extern void __real__exit(int status);
__attribute__((noreturn)) void __wrap__exit(int status);

/* Both runtimes write their counters at exit(), but PHP's processes end without it. */
void __wrap__exit(int status) {
    write_counters();
    __real__exit(status);
}

extern void __real_snapshot_restore(void);
void __wrap_snapshot_restore(void);

/* A restore reverts the counters of a request. */
void __wrap_snapshot_restore(void) {
    write_counters();
    __real_snapshot_restore();
}
