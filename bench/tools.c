/* tools.c - clocks, medians, files, and giving up in words. */
#include "bench.h"
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int64_t wall_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void rest_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

double percentile(double *values, size_t count, double p)
{
    size_t at = (size_t)((double)count * p / 100);

    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare);
    return values[at < count ? at : count - 1];
}

double median(double *values, size_t count)
{
    return percentile(values, count, 50);
}

void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void told(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

void check(pawl_status status, const pawl_error *error, const char *doing)
{
    if (status != PAWL_OK)
        die("%s: %s: %s", doing, pawl_status_name(status), error->message);
}

void *get_memory(size_t size)
{
    void *memory = calloc(1, size);

    if (!memory)
        die("no memory for %zu bytes", size);
    return memory;
}

uint64_t random_next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* ---- Files ---- */

void path_in(const struct bench *bench, const char *name, char out[PATH_SIZE])
{
    if (snprintf(out, PATH_SIZE, "%s/%s", bench->dir, name) >= PATH_SIZE)
        die("the path of %s is too long", name);
}

double store_bytes(const struct bench *bench, const char *name)
{
    static const char *const ends[] = { "", "-wal" };
    char file[256], path[PATH_SIZE];
    struct stat info;
    double sum = 0;

    for (size_t i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s%s", name, ends[i]);
        path_in(bench, file, path);
        if (stat(path, &info) == 0)
            sum += (double)info.st_size;
    }
    return sum;
}

void store_remove(const struct bench *bench, const char *name)
{
    static const char *const ends[] = { "", "-wal", "-shm", "-owner", "-head" };
    char file[256], path[PATH_SIZE];

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(file, sizeof file, "%s%s", name, ends[i]);
        path_in(bench, file, path);
        unlink(path);
    }
}

void remove_dir(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *item;

    while (dir && (item = readdir(dir)))
        if (item->d_name[0] != '.')
            unlinkat(dirfd(dir), item->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
}
