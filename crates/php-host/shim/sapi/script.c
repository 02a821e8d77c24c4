/* The script of a request: checks whether it may run, changes to its directory and describes it to PHP.
 *
 * PHP's own code (php_execute_script without SAPI_OPTION_NO_CHDIR) reads the current directory, enters the script's and
 * returns, on every request. This file keeps the process in the last script's directory, and caches the checks of a
 * script for the rest of that second. The second of a request is also what OPcache's revalidation uses. */
#include "sapi/script.h"

#include "shim.h"
#include "process/sandbox.h"
#include "sapi/input.h"
#include "sapi/watch_function.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS 64 /* a power of two */
#define MAX_PATH 232
/* PHP's exit status of a script with a fatal error or an uncaught exception. */
#define SCRIPT_FAILED 255

typedef struct checked_script {
    uint64_t second;
    uint32_t length;
    char path[MAX_PATH];
} checked_script;

static checked_script checked[SLOTS];

/* The directory this process is in, unless a script has changed it since `directory_second`. */
static char directory[PATH_MAX];
static size_t directory_length;
static uint64_t directory_second;

static zif_handler original_chdir;

static ZEND_NAMED_FUNCTION(watched_chdir) {
    directory_length = 0;
    original_chdir(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void shim_script_startup(void) {
    original_chdir = shim_watch_function(ZEND_STRL("chdir"), watched_chdir);
}

static checked_script *slot_for(const char *path, size_t length) {
    return &checked[zend_inline_hash_func(path, length) & (SLOTS - 1)];
}

/* Accepts only regular files that this user may read. Returns 0, or an HTTP status. */
static unsigned check_script(const char *path, size_t length, uint64_t second) {
    if (length == 0 || memchr(path, '\0', length) != NULL) {
        return 404;
    }
    checked_script *slot = length < MAX_PATH ? slot_for(path, length) : NULL;
    if (slot != NULL && slot->second == second && slot->length == length && memcmp(slot->path, path, length) == 0) {
        return 0;
    }
    struct stat about;
    if (stat(path, &about) != 0) {
        return errno == EACCES ? 403 : 404;
    }
    if (!S_ISREG(about.st_mode)) {
        return 404;
    }
    if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0) {
        return 403;
    }
    if (!shim_sandbox_may_start(path)) {
        return 403;
    }
    if (slot != NULL) {
        slot->second = second;
        slot->length = (uint32_t)length;
        memcpy(slot->path, path, length);
    }
    return 0;
}

static void enter_directory(const char *path, size_t length, uint64_t second) {
    const char *slash = memrchr(path, '/', length);
    size_t wanted = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (wanted == 0 || wanted >= sizeof directory) {
        return;
    }
    if (directory_length == wanted && directory_second == second && memcmp(directory, path, wanted) == 0) {
        return;
    }
    memcpy(directory, path, wanted);
    directory[wanted] = '\0';
    directory_length = chdir(directory) == 0 ? wanted : 0;
    directory_second = second;
}

unsigned shim_script_prepare(zend_file_handle *file) {
    const char *path = shim_text(shim.request->script);
    size_t length = shim.request->script.len;
    uint64_t second = shim.request->received_unix_us / 1000000;
    unsigned status = check_script(path, length, second);
    if (status != 0) {
        return status;
    }
    enter_directory(path, length, second);
    zend_string *name = zend_string_init(path, length, 0);
    zend_stream_init_filename_ex(file, name);
    zend_string_release(name);
    file->primary_script = true;
    return 0;
}

/* The header is a line such as "HTTP/1.1 550 Error", which sets the status, or a field. */
static void error_header(void) {
    const char *line = INI_STR("fastcgi.error_header");
    if (line != NULL && *line != '\0' && !SG(headers_sent)) {
        sapi_header_line header = {.line = line, .line_len = strlen(line)};
        sapi_header_op(SAPI_HEADER_REPLACE, &header);
    }
}

void shim_script_execute(zend_file_handle *file) {
    EG(exit_status) = 0;
    php_execute_script(file);
    if (EG(exit_status) == SCRIPT_FAILED) {
        error_header();
    }
}
