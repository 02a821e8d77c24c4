/* Checks that the files of databases that the boot opened are still the same databases.
 *
 * A connection of the snapshot knows its file by a descriptor, and the version of the content it has read by two
 * counters in the file's header: one of the transactions, one of the schema changes. Both grow by one each, which is
 * enough for processes that open a file and close it. A snapshot lives longer: in the meantime the file may be removed
 * and created again, overwritten with a backup, or emptied and rebuilt. Then the descriptor refers to a
 * removed file, or the counters reach their old values again, and requests would work with pages and a schema of
 * another database.
 *
 * So each request checks which file the path leads to, and, if it was written to, whether a counter went back or stands
 * still. That costs a system call or two. It cannot detect a file that was rebuilt in place with more transactions than
 * the boot had seen. (Layout of the header: https://www.sqlite.org/fileformat2.html, 1.3.) */
#include "snapshot/sessions/sqlite_files.h"

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILES 64

enum { WRITE_VERSION = 18, TRANSACTIONS = 24, SCHEMA_CHANGES = 40, HEADER = 100 };
enum { ROLLBACK_JOURNAL = 1 };

typedef struct {
    char *path;
    struct stat about;
    /* SQLite's own descriptor: closing another one would release SQLite's locks. */
    int fd;
    uint8_t header[HEADER];
} watched_file;

static watched_file files[MAX_FILES];
static size_t n_files;

static uint32_t counter(const uint8_t *header, size_t at) {
    return (uint32_t)header[at] << 24 | (uint32_t)header[at + 1] << 16 | (uint32_t)header[at + 2] << 8 | header[at + 3];
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_modified_since(const struct stat *then, const struct stat *now) {
    return then->st_size != now->st_size || then->st_mtim.tv_sec != now->st_mtim.tv_sec ||
           then->st_mtim.tv_nsec != now->st_mtim.tv_nsec;
}

static int descriptor_of(const struct stat *wanted) {
    int found = -1;
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (all != NULL && found < 0 && (entry = readdir(all)) != NULL) {
        char *end;
        const long fd = strtol(entry->d_name, &end, 10);
        struct stat about;
        if (end != entry->d_name && *end == '\0' && fstat((int)fd, &about) == 0 && same_file(&about, wanted)) {
            found = (int)fd;
        }
    }
    if (all != NULL) {
        closedir(all);
    }
    return found;
}

bool shim_sqlite_files_note(const char *path) {
    for (size_t i = 0; i < n_files; i++) {
        if (strcmp(files[i].path, path) == 0) {
            return true;
        }
    }
    struct stat about;
    if (stat(path, &about) != 0) {
        /* A removed file has no path to watch. */
        return true;
    }
    watched_file *file = &files[n_files];
    if (n_files == MAX_FILES || (file->path = strdup(path)) == NULL) {
        return false;
    }
    n_files++;
    file->fd = descriptor_of(&about);
    if (file->fd < 0) {
        /* It was replaced while the application booted: `about` stays all zero, which matches no file. */
        return true;
    }
    if (pread(file->fd, file->header, HEADER, 0) != HEADER) {
        /* Empty as yet: all counters are 0. */
        memset(file->header, 0, HEADER);
    }
    /* After the header: a write between the two has increased the counter. */
    if (fstat(file->fd, &file->about) != 0) {
        memset(&file->about, 0, sizeof file->about);
    }
    return true;
}

static bool has_gone_back(const watched_file *file, const uint8_t *now, size_t at) {
    return (int32_t)(counter(now, at) - counter(file->header, at)) < 0;
}

const char *shim_sqlite_files_changed(void) {
    for (size_t i = 0; i < n_files; i++) {
        const watched_file *file = &files[i];
        struct stat now;
        if (stat(file->path, &now) != 0 || !same_file(&now, &file->about)) {
            return "a database of SQLite that was open at the snapshot is a different file now";
        }
        uint8_t header[HEADER] = {0};
        if (!is_modified_since(&file->about, &now) || pread(file->fd, header, HEADER, 0) < 0) {
            continue;
        }
        /* With a journal, each transaction counts; in WAL mode, one that is copied into the file may not. */
        const bool stands = header[WRITE_VERSION] == ROLLBACK_JOURNAL &&
                            counter(header, TRANSACTIONS) == counter(file->header, TRANSACTIONS);
        if (stands || has_gone_back(file, header, TRANSACTIONS) || has_gone_back(file, header, SCHEMA_CHANGES)) {
            return "a database of SQLite that was open at the snapshot was rebuilt";
        }
    }
    return NULL;
}
