/* Counts the calls by which a process changes files below one folder, and disturbs one of them.

   Loaded with LD_PRELOAD, it stands between a program and the C library, so that it sees Python,
   Rust (safetensors) and C++ (Arrow) alike. What it does not see is writing to a mapped file, and
   stdio inside the C library; tests/crash/test_shim.py checks that all files of the commands are
   seen. Armed by crash_arm() or, in a new process, by the variables CRASH_FOLDER, CRASH_N,
   CRASH_MODE, CRASH_ERRNO and CRASH_LOG. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The same order as MODES in trials.py. */
enum mode {
    COUNT,       /* disturb nothing */
    KILL_BEFORE, /* SIGKILL instead of the n-th call */
    KILL_AFTER,  /* SIGKILL when the n-th call is done */
    KILL_TORN,   /* SIGKILL after half of the bytes of the n-th call */
    FAIL,        /* the n-th call fails */
    FULL,        /* a full disk: half of the n-th call, then nothing that needs space works */
    SHORT        /* the n-th call writes half and says so, which a system may do */
};
enum action { PASS, AFTER, TORN, ERROR, HALF };
enum need { NEEDS_SPACE, NEEDS_NONE };

static char folder[PATH_MAX];
static size_t folder_length;
static long target;
static int mode, error_number, log_file = -1;
static atomic_int armed;
static atomic_long counted;

void crash_arm(const char *path, long n, int how, int number, int log) {
    snprintf(folder, sizeof folder, "%s", path);
    folder_length = strlen(folder);
    target = n;
    mode = how;
    error_number = number;
    log_file = log;
    atomic_store(&counted, 0);
    atomic_store(&armed, 1);
}

long crash_count(void) { return atomic_load(&counted); }

__attribute__((constructor)) static void arm_by_environment(void) {
    const char *path = getenv("CRASH_FOLDER"), *n = getenv("CRASH_N"), *how = getenv("CRASH_MODE");
    const char *number = getenv("CRASH_ERRNO"), *log = getenv("CRASH_LOG");
    if (!path || !n || !how || !number || !log) return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    crash_arm(path, atol(n), atoi(how), atoi(number), file);
    unsetenv("CRASH_FOLDER"); /* its own processes run undisturbed */
}

__attribute__((noreturn)) static void die(void) {
    syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGKILL);
    for (;;) pause();
}

/* The path of a file that is named relative to a folder, or of the folder itself (name NULL). */
static int full_path(int directory, const char *name, char *out) {
    if (name && name[0] == '/') return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX;
    char link[64];
    if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, out, PATH_MAX - 1);
    if (length < 0) return 0;
    out[length] = 0;
    if (!name) return 1;
    return snprintf(out + length, PATH_MAX - length, "/%s", name) < PATH_MAX - length;
}

/* Counts a call on a file below the folder and says what is to become of it. `from` is the former
   name in a rename, for the log. */
static enum action enter_from(const char *call, int directory, const char *name, size_t bytes,
                              enum need need, int from_directory, const char *from) {
    if (!atomic_load(&armed)) return PASS;
    int error = errno;
    char path[PATH_MAX];
    if (!full_path(directory, name, path) || strncmp(path, folder, folder_length) ||
        (path[folder_length] != '/' && path[folder_length] != 0)) {
        errno = error;
        return PASS;
    }
    long n = atomic_fetch_add(&counted, 1) + 1;
    if (log_file >= 0) {
        char before[PATH_MAX] = "", line[2 * PATH_MAX + 128];
        if (from) full_path(from_directory, from, before);
        int length = snprintf(line, sizeof line, "%ld\t%s\t%zu\t%s\t%s\n", n, call, bytes, path, before);
        syscall(SYS_write, log_file, line, length);
    }
    errno = error;
    if (mode == FULL && n > target && need == NEEDS_SPACE) return ERROR;
    if (n != target) return PASS;
    switch (mode) {
    case KILL_BEFORE: die();
    case KILL_AFTER: return AFTER;
    case KILL_TORN:
        if (bytes < 2) die();
        return TORN;
    case FAIL: return ERROR;
    case FULL: return need == NEEDS_NONE ? PASS : bytes < 2 ? ERROR : HALF;
    case SHORT: return bytes < 2 ? PASS : HALF;
    default: return PASS;
    }
}

static enum action enter(const char *call, int directory, const char *name, size_t bytes,
                         enum need need) {
    return enter_from(call, directory, name, bytes, need, AT_FDCWD, NULL);
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define FAILED(action, result) \
    if (action == ERROR) { \
        errno = error_number; \
        return result; \
    }

#define DONE(action) \
    if (action == AFTER || action == TORN) die()

/* Calls that write `size` bytes to an open file. */
#define WRITES(type, name, parameters, file, size, ...) \
    type name parameters { \
        REAL(name); \
        enum action action = enter(#name, file, NULL, size, NEEDS_SPACE); \
        FAILED(action, -1) \
        if (action == TORN || action == HALF) size /= 2; \
        type result = real(__VA_ARGS__); \
        DONE(action); \
        return result; \
    }

WRITES(ssize_t, write, (int fd, const void *data, size_t size), fd, size, fd, data, size)
WRITES(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), fd, size, fd, data, size, at)
WRITES(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), fd, size, fd, data, size, at)
WRITES(ssize_t, sendfile, (int to, int from, off_t *at, size_t size), to, size, to, from, at, size)
WRITES(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t size), to, size, to, from, at, size)
WRITES(ssize_t, copy_file_range,
       (int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags), to, size,
       from, a, to, b, size, flags)

static size_t total(const struct iovec *parts, int number) {
    size_t sum = 0;
    for (int i = 0; i < number; i++) sum += parts[i].iov_len;
    return sum;
}

/* The same from several places: half of it is half of the parts, or of the one there is. */
#define WRITES_PARTS(name, parameters, ...) \
    ssize_t name parameters { \
        REAL(name); \
        enum action action = enter(#name, fd, NULL, total(parts, number), NEEDS_SPACE); \
        FAILED(action, -1) \
        struct iovec half; \
        if (action == TORN || action == HALF) { \
            half = parts[0]; \
            if (number == 1) half.iov_len /= 2; \
            if (number > 1) number /= 2; \
            else parts = &half; \
        } \
        ssize_t result = real(__VA_ARGS__); \
        DONE(action); \
        return result; \
    }

WRITES_PARTS(writev, (int fd, const struct iovec *parts, int number), fd, parts, number)
WRITES_PARTS(pwritev, (int fd, const struct iovec *parts, int number, off_t at), fd, parts, number, at)
WRITES_PARTS(pwritev64, (int fd, const struct iovec *parts, int number, off64_t at), fd, parts, number, at)
WRITES_PARTS(pwritev2, (int fd, const struct iovec *parts, int number, off_t at, int flags), fd, parts, number, at, flags)
WRITES_PARTS(pwritev64v2, (int fd, const struct iovec *parts, int number, off64_t at, int flags), fd, parts, number, at, flags)

/* Calls that change something else: by `directory` and `path`, or by a file (path NULL). */
#define CHANGES(name, parameters, directory, path, need, failure, ...) \
    int name parameters { \
        REAL(name); \
        enum action action = enter(#name, directory, path, 0, need); \
        FAILED(action, failure) \
        int result = real(__VA_ARGS__); \
        DONE(action); \
        return result; \
    }

CHANGES(fsync, (int fd), fd, NULL, NEEDS_SPACE, -1, fd)
CHANGES(fdatasync, (int fd), fd, NULL, NEEDS_SPACE, -1, fd)
CHANGES(ftruncate, (int fd, off_t size), fd, NULL, NEEDS_NONE, -1, fd, size)
CHANGES(ftruncate64, (int fd, off64_t size), fd, NULL, NEEDS_NONE, -1, fd, size)
CHANGES(truncate, (const char *path, off_t size), AT_FDCWD, path, NEEDS_NONE, -1, path, size)
CHANGES(truncate64, (const char *path, off64_t size), AT_FDCWD, path, NEEDS_NONE, -1, path, size)
CHANGES(posix_fallocate, (int fd, off_t at, off_t size), fd, NULL, NEEDS_SPACE, error_number, fd, at, size)
CHANGES(posix_fallocate64, (int fd, off64_t at, off64_t size), fd, NULL, NEEDS_SPACE, error_number, fd, at, size)
CHANGES(fallocate, (int fd, int how, off_t at, off_t size), fd, NULL, NEEDS_SPACE, -1, fd, how, at, size)
CHANGES(fallocate64, (int fd, int how, off64_t at, off64_t size), fd, NULL, NEEDS_SPACE, -1, fd, how, at, size)
CHANGES(fchmod, (int fd, mode_t bits), fd, NULL, NEEDS_NONE, -1, fd, bits)
CHANGES(chmod, (const char *path, mode_t bits), AT_FDCWD, path, NEEDS_NONE, -1, path, bits)
CHANGES(fchmodat, (int dir, const char *path, mode_t bits, int flags), dir, path, NEEDS_NONE, -1, dir, path, bits, flags)
CHANGES(mkdir, (const char *path, mode_t bits), AT_FDCWD, path, NEEDS_SPACE, -1, path, bits)
CHANGES(mkdirat, (int dir, const char *path, mode_t bits), dir, path, NEEDS_SPACE, -1, dir, path, bits)
CHANGES(rmdir, (const char *path), AT_FDCWD, path, NEEDS_NONE, -1, path)
CHANGES(unlink, (const char *path), AT_FDCWD, path, NEEDS_NONE, -1, path)
CHANGES(unlinkat, (int dir, const char *path, int flags), dir, path, NEEDS_NONE, -1, dir, path, flags)
CHANGES(link, (const char *from, const char *to), AT_FDCWD, to, NEEDS_SPACE, -1, from, to)
CHANGES(linkat, (int a, const char *from, int b, const char *to, int flags), b, to, NEEDS_SPACE, -1, a, from, b, to, flags)
CHANGES(symlink, (const char *text, const char *path), AT_FDCWD, path, NEEDS_SPACE, -1, text, path)
CHANGES(symlinkat, (const char *text, int dir, const char *path), dir, path, NEEDS_SPACE, -1, text, dir, path)

#define RENAMES(name, parameters, old_directory, new_directory, ...) \
    int name parameters { \
        REAL(name); \
        enum action action = \
            enter_from(#name, new_directory, to, 0, NEEDS_NONE, old_directory, from); \
        FAILED(action, -1) \
        int result = real(__VA_ARGS__); \
        DONE(action); \
        return result; \
    }

RENAMES(rename, (const char *from, const char *to), AT_FDCWD, AT_FDCWD, from, to)
RENAMES(renameat, (int a, const char *from, int b, const char *to), a, b, a, from, b, to)
RENAMES(renameat2, (int a, const char *from, int b, const char *to, unsigned flags), a, b, a, from, b, to, flags)

/* Opening a file counts where it can make one or empty it. */
#define OPENS(name, parameters, directory, ...) \
    int name parameters { \
        REAL(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t bits = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        enum action action = PASS; \
        if (flags & (O_CREAT | O_TRUNC)) action = enter(#name, directory, path, 0, NEEDS_SPACE); \
        FAILED(action, -1) \
        int result = real(__VA_ARGS__, bits); \
        DONE(action); \
        return result; \
    }

OPENS(open, (const char *path, int flags, ...), AT_FDCWD, path, flags)
OPENS(open64, (const char *path, int flags, ...), AT_FDCWD, path, flags)
OPENS(openat, (int dir, const char *path, int flags, ...), dir, dir, path, flags)
OPENS(openat64, (int dir, const char *path, int flags, ...), dir, dir, path, flags)
