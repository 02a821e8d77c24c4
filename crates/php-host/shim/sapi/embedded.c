/* With OPcache, one process compiles an embedded text and the others find it in shared memory. OPcache asks for a
 * file's path and modification time only, so only the stream made here knows that there is no file. */
#include "sapi/embedded.h"

#include "shim.h"

#include <string.h>
#include <sys/stat.h>

typedef struct embedded_file {
    php_stream stream;
    uint64_t changed;
    size_t length;
} embedded_file;

static int embedded_stat(php_stream *stream, php_stream_statbuf *status) {
    const embedded_file *file = (const embedded_file *)stream;
    memset(status, 0, sizeof *status);
    status->sb.st_mode = S_IFREG | 0444;
    status->sb.st_size = (off_t)file->length;
    status->sb.st_mtime = (time_t)file->changed;
    return 0;
}

static const php_stream_ops embedded_ops = {.label = "howdah library", .stat = embedded_stat};

bool shim_embedded_run(const char *path, const char *text, size_t length, uint64_t changed) {
    embedded_file source = {.stream = {.ops = &embedded_ops}, .changed = changed, .length = length};
    zend_file_handle file;
    zend_string *name = zend_string_init(path, strlen(path), 0);
    zend_stream_init_filename_ex(&file, name);
    file.type = ZEND_HANDLE_STREAM;
    memset(&file.handle, 0, sizeof file.handle);
    file.handle.stream.handle = &source;
    file.opened_path = zend_string_copy(name);
    file.buf = emalloc(length + ZEND_MMAP_AHEAD);
    memcpy(file.buf, text, length);
    memset(file.buf + length, 0, ZEND_MMAP_AHEAD);
    file.len = length;
    bool done = zend_execute_scripts(ZEND_REQUIRE, NULL, 1, &file) == SUCCESS && EG(exception) == NULL;
    zend_destroy_file_handle(&file);
    /* Removes the embedded path: the application's first included file must be its script. */
    zend_hash_del(&EG(included_files), name);
    zend_string_release(name);
    return done;
}
