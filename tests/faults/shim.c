/* A disk that can be watched, stopped and made to fail: preloaded into a Python, it stands between SQLite and the system.

   It looks at files under one folder only, and does nothing until it is armed. Armed with a journal, it writes down
   each change of a file before it is made, and each sync when it is done, so that the state of the disk after a loss of
   power can be worked out (disk.py). Armed with a number, it kills the process at that call, or lets the call fail.  */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 4096
#define LONGEST 4096

enum { CREATE = 'C', WRITE = 'W', TRUNCATE = 'T', SYNC = 'S', UNLINK = 'U', RENAME = 'R', OPEN = 'O', READ = 'G',
       FAILED = 'F', MARK = 'M', FOLDER = 'D' };

static char folder[LONGEST];     /* what is watched; "" while nothing is */
static size_t folder_length;
static int journal = -1;
static long calls;               /* counted since it was armed */
static long stop_at, fail_at;    /* 0: never */
static int fail_with, fail_always;
static char fail_kinds[64];      /* which calls are counted, and may fail; "": all */
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char *paths[FILES];       /* of descriptors of files that are watched, relative to the folder; "" the folder */

#define REAL(type, name, ...) \
    static type (*real_##name)(__VA_ARGS__); \
    if (!real_##name) real_##name = (type (*)(__VA_ARGS__)) dlsym(RTLD_NEXT, #name)

/* -- control, called by Python ------------------------------------------------------------------------------------- */

void shim_arm(const char *where, int descriptor, long stop, long fail, int with, int always, const char *kinds) {
    pthread_mutex_lock(&mutex);
    snprintf(folder, sizeof folder, "%s/", where);
    folder_length = strlen(folder);
    journal = descriptor;
    calls = 0;
    stop_at = stop;
    fail_at = fail;
    fail_with = with;
    fail_always = always;
    snprintf(fail_kinds, sizeof fail_kinds, "%s", kinds);
    pthread_mutex_unlock(&mutex);
}

void shim_disarm(void) {
    pthread_mutex_lock(&mutex);
    stop_at = fail_at = 0;
    pthread_mutex_unlock(&mutex);
}

long shim_calls(void) { return calls; }

/* -- what all calls do --------------------------------------------------------------------------------------------- */

static void put(const void *data, size_t length) {
    REAL(ssize_t, write, int, const void *, size_t);
    const char *at = data;
    while (length) {
        ssize_t done = real_write(journal, at, length);
        if (done <= 0) { kill(getpid(), SIGABRT); return; }
        at += done;
        length -= (size_t) done;
    }
}

/* kind, lengths of the two texts and of the data, a number; then texts and data */
static void note(char kind, const char *one, const char *two, uint64_t number, const void *data, uint64_t length) {
    if (journal < 0) return;
    uint32_t first = (uint32_t) strlen(one), second = (uint32_t) strlen(two);
    char head[25];
    head[0] = kind;
    memcpy(head + 1, &first, 4);
    memcpy(head + 5, &second, 4);
    memcpy(head + 9, &length, 8);
    memcpy(head + 17, &number, 8);
    put(head, sizeof head);
    put(one, first);
    put(two, second);
    put(data, length);
}

void shim_mark(const char *text) {
    pthread_mutex_lock(&mutex);
    note(MARK, text, "", 0, "", 0);
    pthread_mutex_unlock(&mutex);
}

/* Relative to the folder; NULL if it is not watched: elsewhere, shared memory, a claim. */
static const char *watched(const char *path) {
    if (!folder_length || strncmp(path, folder, folder_length)) {
        size_t length = folder_length ? folder_length - 1 : 0;
        return length && !strncmp(path, folder, length) && !path[length] ? "" : NULL;
    }
    const char *name = path + folder_length;
    size_t length = strlen(name);
    if (strchr(name, '/') || (length >= 4 && !strcmp(name + length - 4, "-shm"))) return NULL;
    return name;
}

static const char *known(int descriptor) {
    return folder_length && descriptor >= 0 && descriptor < FILES ? paths[descriptor] : NULL;
}

/* Count a call; nonzero if it is to fail, with errno set. */
static int refused(char kind, const char *name, uint64_t number) {
    if (*fail_kinds && !strchr(fail_kinds, kind)) return 0;
    calls++;
    if (stop_at && calls == stop_at) kill(getpid(), SIGKILL);
    if (!fail_at || (fail_always ? calls < fail_at : calls != fail_at)) return 0;
    note(FAILED, name, (char[]) {kind, 0}, number, "", 0);
    errno = fail_with;
    return -1;
}

/* -- files that are opened and closed ------------------------------------------------------------------------------ */

static int opened(int descriptor, const char *name) {
    if (descriptor >= 0 && descriptor < FILES) paths[descriptor] = strdup(name);
    return descriptor;
}

static int open_it(int at, const char *path, int flags, mode_t mode) {
    REAL(int, openat64, int, const char *, int, ...);
    const char *name = watched(path);
    if (!name) {
        int descriptor = real_openat64(at, path, flags, mode);
        if (descriptor >= 0 && descriptor < FILES) paths[descriptor] = NULL;
        return descriptor;
    }
    pthread_mutex_lock(&mutex);
    struct stat there;
    int made = (flags & O_CREAT) && lstat(path, &there) != 0;
    int descriptor = refused(made ? CREATE : OPEN, name, 0) ? -1 : real_openat64(at, path, flags, mode);
    if (descriptor >= 0) {
        if (made) note(CREATE, name, "", 0, "", 0);
        else if (flags & O_TRUNC) note(TRUNCATE, name, "", 0, "", 0);
    }
    opened(descriptor, name);
    pthread_mutex_unlock(&mutex);
    return descriptor;
}

#define MODE \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...) { MODE return open_it(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_it(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE return open_it(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE return open_it(at, path, flags, mode); }

int close(int descriptor) {
    REAL(int, close, int);
    if (descriptor >= 0 && descriptor < FILES) paths[descriptor] = NULL; /* some bytes are lost; it does not live long */
    return real_close(descriptor);
}

/* -- files that are read and changed ------------------------------------------------------------------------------- */

static ssize_t write_at(int descriptor, const void *data, size_t length, off64_t offset, int positioned) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    REAL(ssize_t, write, int, const void *, size_t);
    const char *name = known(descriptor);
    if (!name) return positioned ? real_pwrite64(descriptor, data, length, offset) : real_write(descriptor, data, length);
    pthread_mutex_lock(&mutex);
    if (!positioned) offset = lseek64(descriptor, 0, SEEK_CUR);
    ssize_t done = refused(WRITE, name, (uint64_t) offset);
    if (!done) {
        note(WRITE, name, "", (uint64_t) offset, data, length);
        done = positioned ? real_pwrite64(descriptor, data, length, offset) : real_write(descriptor, data, length);
    }
    pthread_mutex_unlock(&mutex);
    return done;
}

ssize_t write(int descriptor, const void *data, size_t length) { return write_at(descriptor, data, length, 0, 0); }
ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset) {
    return write_at(descriptor, data, length, offset, 1);
}
ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t offset) {
    return write_at(descriptor, data, length, offset, 1);
}

static int may_read(int descriptor) {
    const char *name = known(descriptor);
    if (!name) return 0;
    pthread_mutex_lock(&mutex);
    int done = refused(READ, name, 0);
    pthread_mutex_unlock(&mutex);
    return done;
}

ssize_t read(int descriptor, void *data, size_t length) {
    REAL(ssize_t, read, int, void *, size_t);
    return may_read(descriptor) ? -1 : real_read(descriptor, data, length);
}
ssize_t pread(int descriptor, void *data, size_t length, off_t offset) {
    REAL(ssize_t, pread, int, void *, size_t, off_t);
    return may_read(descriptor) ? -1 : real_pread(descriptor, data, length, offset);
}
ssize_t pread64(int descriptor, void *data, size_t length, off64_t offset) {
    REAL(ssize_t, pread64, int, void *, size_t, off64_t);
    return may_read(descriptor) ? -1 : real_pread64(descriptor, data, length, offset);
}

static int truncate_it(int descriptor, off64_t length) {
    REAL(int, ftruncate64, int, off64_t);
    const char *name = known(descriptor);
    if (!name) return real_ftruncate64(descriptor, length);
    pthread_mutex_lock(&mutex);
    int done = refused(TRUNCATE, name, (uint64_t) length);
    if (!done) {
        note(TRUNCATE, name, "", (uint64_t) length, "", 0);
        done = real_ftruncate64(descriptor, length);
    }
    pthread_mutex_unlock(&mutex);
    return done;
}

int ftruncate(int descriptor, off_t length) { return truncate_it(descriptor, length); }
int ftruncate64(int descriptor, off64_t length) { return truncate_it(descriptor, length); }

static int sync_it(int descriptor, int (*really)(int)) {
    const char *name = known(descriptor);
    if (!name) return really(descriptor);
    pthread_mutex_lock(&mutex);
    int done = refused(SYNC, name, 0);
    if (!done) {
        done = really(descriptor);
        if (!done) note(*name ? SYNC : FOLDER, name, "", 0, "", 0);
    }
    pthread_mutex_unlock(&mutex);
    return done;
}

int fsync(int descriptor) {
    REAL(int, fsync, int);
    return sync_it(descriptor, real_fsync);
}
int fdatasync(int descriptor) {
    REAL(int, fdatasync, int);
    return sync_it(descriptor, real_fdatasync);
}

/* -- names --------------------------------------------------------------------------------------------------------- */

int unlink(const char *path) {
    REAL(int, unlink, const char *);
    const char *name = watched(path);
    if (!name) return real_unlink(path);
    pthread_mutex_lock(&mutex);
    int done = refused(UNLINK, name, 0);
    if (!done && !(done = real_unlink(path))) note(UNLINK, name, "", 0, "", 0);
    pthread_mutex_unlock(&mutex);
    return done;
}

int rename(const char *from, const char *to) {
    REAL(int, rename, const char *, const char *);
    const char *one = watched(from), *two = watched(to);
    if (!one || !two) return real_rename(from, to);
    pthread_mutex_lock(&mutex);
    int done = refused(RENAME, one, 0);
    if (!done && !(done = real_rename(from, to))) note(RENAME, one, two, 0, "", 0);
    pthread_mutex_unlock(&mutex);
    return done;
}
