/* PHP's part of a pool's sandbox: decides which files are PHP code, and logs refusals with script and path. The kernel
 * enforces the worker's restrictions (src/sandbox/); nothing in this file can stop a script that an attacker controls.
 * It keeps other scripts from running code that such a script, or an upload, has left behind. */
#include "process/sandbox.h"

#include "shim.h"
#include "process/stack_text.h"
#include "sapi/log.h"
#include "sapi/watch_function.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <zend_observer.h>

/* Log lines about refusals per second; a script that causes them in a loop must not fill the disk. */
#define LINES_PER_SECOND 20
#define LONGEST_NAME 256

static const howdah_code_rule *rules;
static size_t n_rules;
static bool active;

/* --- logging --- */

SHIM_EXPORT bool howdah_c_may_log_refusal(void) {
    static time_t second;
    static unsigned lines;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec != second) {
        second = now.tv_sec;
        lines = 0;
    }
    return lines++ < LINES_PER_SECOND;
}

SHIM_EXPORT size_t howdah_c_place(char *buffer, size_t size) {
    stack_text out = {buffer, size, LONGEST_NAME};
    const zend_execute_data *frame = EG(current_execute_data);
    while (frame != NULL && (frame->func == NULL || !ZEND_USER_CODE(frame->func->type))) {
        frame = frame->prev_execute_data;
    }
    if (frame != NULL) {
        put(&out, "in ");
        put_name(&out, frame->func->op_array.filename);
        put(&out, ":");
        put_line_number(&out, frame);
        put(&out, " ");
    }
    if (shim.request != NULL) {
        put(&out, "(");
        put_bytes(&out, shim.strings + shim.request->uri.off, MIN(shim.request->uri.len, LONGEST_NAME));
        put(&out, ")");
    }
    return size - out.room;
}

/* Logs a refusal, with the position in the script that caused it. */
static void log_refusal(const char *what, size_t length) {
    if (!howdah_c_may_log_refusal()) {
        return;
    }
    char place[2 * LONGEST_NAME + 64];
    size_t place_length = howdah_c_place(place, sizeof place);
    shim_log(LOG_WARNING, "sandbox: refused %.*s %.*s", (int)MIN(length, 600), what, (int)place_length, place);
}

/* --- code files --- */

typedef enum file_kind { OTHER, DATA, WRITTEN_CODE } file_kind;

/* Returns the kind by the most specific directory. `path` is a real path. */
static file_kind kind_of(const char *path) {
    size_t length = strlen(path), best = 0;
    file_kind kind = OTHER;
    for (size_t i = 0; i < n_rules; i++) {
        const howdah_code_rule *rule = &rules[i];
        bool below = length >= rule->length && memcmp(path, rule->path, rule->length) == 0 &&
                     (path[rule->length] == '/' || path[rule->length] == '\0');
        /* Of two equal ones, the one for code counts: it was configured in addition. */
        if (below && (rule->length > best || (rule->length == best && rule->code))) {
            best = rule->length;
            kind = rule->code ? WRITTEN_CODE : DATA;
        }
    }
    return kind;
}

static file_kind kind_of_name(const char *name) {
    /* Through PHP's cache: opening the file next needs the same path. */
    char real[MAXPATHLEN];
    return tsrm_realpath(name, real) == NULL ? OTHER : kind_of(real);
}

/* Returns the kind of the archive in a path that leads into one: the part that is a file. */
static file_kind kind_in_archive(const char *name) {
    char part[PATH_MAX];
    size_t length = strlen(name);
    if (length >= sizeof part) {
        return DATA;
    }
    memcpy(part, name, length + 1);
    for (char *end = part + length; end != NULL && end > part; end = strrchr(part, '/')) {
        *end = '\0';
        struct stat about;
        if (stat(part, &about) == 0) {
            return S_ISREG(about.st_mode) ? kind_of_name(part) : OTHER;
        }
    }
    return OTHER;
}

static const char *after(const char *name, const char *scheme) {
    size_t length = strlen(scheme);
    return strncasecmp(name, scheme, length) == 0 ? name + length : NULL;
}

/* Returns the kind of the file that is opened as PHP code by this name, which may use wrappers for archives and
 * compression. */
static file_kind kind_of_source(const char *name) {
    static const char *const through[] = {"file://", "compress.zlib://", "compress.bzip2://", "zlib:"};
    for (int depth = 0; depth < 8; depth++) {
        const char *inner = NULL;
        for (size_t i = 0; i < sizeof through / sizeof *through && inner == NULL; i++) {
            inner = after(name, through[i]);
        }
        if (inner == NULL && after(name, "php://filter/") != NULL) {
            const char *resource = strstr(name, "/resource=");
            if (resource == NULL) {
                return OTHER;
            }
            inner = resource + strlen("/resource=");
        }
        if (inner == NULL) {
            const char *archive = after(name, "phar://");
            archive = archive != NULL ? archive : after(name, "zip://");
            if (archive != NULL) {
                char before_fragment[PATH_MAX];
                size_t length = strcspn(archive, "#");
                if (length >= sizeof before_fragment) {
                    return DATA;
                }
                memcpy(before_fragment, archive, length);
                before_fragment[length] = '\0';
                return kind_in_archive(before_fragment);
            }
            return kind_of_name(name);
        }
        name = inner;
    }
    return DATA;
}

bool shim_sandbox_may_start(const char *path) {
    if (n_rules == 0 || kind_of_name(path) == OTHER) {
        return true;
    }
    static const char what[] = "to run a script in a directory that can be written to";
    log_refusal(what, sizeof what - 1);
    return false;
}

static zend_op_array *(*original_compile_file)(zend_file_handle *file, int type);
static zend_result (*original_stream_open)(zend_file_handle *file);
/* The file that is being compiled: other files that are opened meanwhile are not code. */
static const zend_file_handle *compiled;

static zend_op_array *compile_file_watched(zend_file_handle *file, int type) {
    compiled = file;
    zend_op_array *code = original_compile_file(file, type);
    /* Not restored to an outer compilation's file: that is already open, and after a bailout it may be gone. */
    compiled = NULL;
    return code;
}

/* Closes a file as if opening it had failed. */
static void close_refused_file(zend_file_handle *file) {
    if (file->type == ZEND_HANDLE_STREAM && file->handle.stream.closer != NULL) {
        file->handle.stream.closer(file->handle.stream.handle);
    } else if (file->type == ZEND_HANDLE_FP && file->handle.fp != NULL) {
        fclose(file->handle.fp);
    }
    memset(&file->handle, 0, sizeof file->handle);
    file->type = ZEND_HANDLE_FILENAME;
    if (file->opened_path != NULL) {
        zend_string_release(file->opened_path);
        file->opened_path = NULL;
    }
}

/* OPcache does not open cached code again; that was checked when it was compiled. */
static zend_result stream_open_watched(zend_file_handle *file) {
    zend_result result = original_stream_open(file);
    if (result != SUCCESS || file != compiled) {
        return result;
    }
    const zend_string *name = file->filename;
    if (file->opened_path != NULL && strstr(ZSTR_VAL(name), "://") == NULL) {
        name = file->opened_path;
    }
    if (kind_of_source(ZSTR_VAL(name)) != DATA) {
        return result;
    }
    char what[PATH_MAX + 64];
    int length = (snprintf)(what, sizeof what, "to run a file from a directory for data as PHP: %s", ZSTR_VAL(name));
    log_refusal(what, (size_t)MAX(length, 0));
    close_refused_file(file);
    return FAILURE;
}

void shim_sandbox_startup(void) {
    if (shim.boot->sandbox) {
        original_stream_open = zend_stream_open_function;
        zend_stream_open_function = stream_open_watched;
    }
}

/* --- refusals of the kernel --- */

/* Detects refusals of Landlock or file permissions in PHP's messages, including those that scripts silence. */
static void error_watched(int type, zend_string *file, uint32_t line, zend_string *message) {
    static const char *const texts[] = {"Permission denied", "Operation not permitted", "Unable to fork [",
                                        "Unable to execute '", "Could not execute mail delivery program"};
    (void)type;
    (void)file;
    (void)line;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strstr(ZSTR_VAL(message), texts[i]) != NULL) {
            log_refusal(ZSTR_VAL(message), ZSTR_LEN(message));
            return;
        }
    }
}

static zif_handler original_proc_open;

/* A child that fails to become the program may be unable to report it. */
static ZEND_NAMED_FUNCTION(proc_open_watched) {
    static const char what[] = "to run a program: proc_open()";
    log_refusal(what, sizeof what - 1);
    original_proc_open(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void log_connection(const struct sockaddr *address) {
    char text[INET6_ADDRSTRLEN] = "?", what[INET6_ADDRSTRLEN + 64];
    unsigned port = 0;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
        port = ntohs(v4->sin_port);
    } else {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
        port = ntohs(v6->sin6_port);
    }
    int length = (snprintf)(what, sizeof what, "a connection to %s port %u", text, port);
    log_refusal(what, (size_t)length);
}

/* connect(2), for libphp and every library: this program's definition is found before libc's. Extensions report a
 * refused connection in different ways, and not all of them to PHP. */
__attribute__((visibility("default"))) int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length) {
    const struct sockaddr *to = address.__sockaddr__;
    int result = (int)syscall(SYS_connect, fd, to, length);
    if (result != 0 && errno == EACCES && active && to != NULL && length >= sizeof(struct sockaddr_in) &&
        (to->sa_family == AF_INET || (to->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)))) {
        log_connection(to);
        errno = EACCES;
    }
    return result;
}

/* --- border --- */

SHIM_EXPORT const char *howdah_c_setting(const char *name) {
    return zend_ini_string(name, strlen(name), 0);
}

SHIM_EXPORT void howdah_c_sandbox_code(const howdah_code_rule *list, size_t n, bool no_programs) {
    rules = list;
    n_rules = n;
    active = true;
    original_compile_file = zend_compile_file;
    zend_compile_file = compile_file_watched;
    zend_observer_error_register(error_watched);
    if (no_programs) {
        original_proc_open = shim_watch_function(ZEND_STRL("proc_open"), proc_open_watched);
    }
}
