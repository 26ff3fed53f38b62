/* trim.c - freed memory returns to the system. A program of its own, built without sanitizers,
 * which keep freed memory. */
#include "env/trim.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define PIECES  4000
#define SIZE    2000

static long resident_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;

    if (!file || fscanf(file, "%ld %ld", &size, &resident) != 2)
        abort();
    fclose(file);
    return resident;
}

/* The last piece stays, so that the C library cannot return the others by itself. */
static void *use(void *kept)
{
    void **pieces = malloc(PIECES * sizeof *pieces);

    for (int i = 0; i < PIECES; i++)
        pieces[i] = memset(malloc(SIZE), 1, SIZE);
    *(void **)kept = pieces[PIECES - 1];
    for (int i = 0; i < PIECES - 1; i++)
        free(pieces[i]);
    free(pieces);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    void *kept[THREADS];
    long before, used, after;

    memory_share_pools();
    before = resident_pages();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, use, &kept[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    used = resident_pages();
    memory_give_back();
    after = resident_pages();
    printf("1..1\n# %ld pages at first, %ld when freed, %ld when returned\n", before, used, after);
    if (used > before + 2000 && after < before + (used - before) / 4) {
        puts("ok 1 - trim: memory that was freed goes back to the system\n# 1 passed, 0 failed");
    } else {
        puts("not ok 1 - trim: memory that was freed goes back to the system\n# 0 passed, 1 failed");
        return 1;
    }
    for (int i = 0; i < THREADS; i++)
        free(kept[i]);
    return 0;
}
