/* vfs_content.c - files of the disk in memory, and what of them survives a power cut. */
#include "fault/vfs_int.h"
#include "lib/test.h"
#include <stdlib.h>

#define SECTOR 512u

static struct content *contents;
static struct name names[DISK_NAMES];
static uint32_t name_count;
static struct unsynced *unsynced, **unsynced_end = &unsynced;
static unsigned lost;

/* ---- bytes ---- */

static void bytes_grow(struct bytes *bytes, size_t size)
{
    if (size > bytes->capacity) {
        size_t capacity = size + size / 2;

        bytes->data = realloc(bytes->data, capacity);
        EXPECT(bytes->data != NULL);
        bytes->capacity = capacity;
    }
    if (size > bytes->size) {
        memset(bytes->data + bytes->size, 0, size - bytes->size);
        bytes->size = size;
    }
}

void bytes_write(struct bytes *bytes, size_t at, const void *data, size_t size)
{
    bytes_grow(bytes, at + size);
    if (size)
        memcpy(bytes->data + at, data, size);
}

void bytes_truncate(struct bytes *bytes, size_t size)
{
    if (size < bytes->size)
        bytes->size = size;
    else
        bytes_grow(bytes, size);
}

void bytes_copy(struct bytes *to, const struct bytes *from)
{
    to->size = 0;
    bytes_write(to, 0, from->data, from->size);
}

/* ---- contents ---- */

struct content *content_new(void)
{
    struct content *content = calloc(1, sizeof *content);

    EXPECT(content != NULL);
    content->next = contents;
    contents = content;
    return content;
}

static struct unsynced *note(struct content *content, bool is_truncation, size_t at,
                             const void *data, size_t size)
{
    struct unsynced *op = calloc(1, sizeof *op + (is_truncation ? 0 : size));

    EXPECT(op != NULL);
    op->content = content;
    op->is_truncation = is_truncation;
    op->at = at;
    op->size = size;
    if (!is_truncation && size)
        memcpy(op->data, data, size);
    *unsynced_end = op;
    unsynced_end = &op->next;
    return op;
}

void content_note(struct content *content, size_t at, const void *data, size_t size)
{
    note(content, false, at, data, size)->is_cut = true;
}

void content_write(struct content *content, size_t at, const void *data, size_t size)
{
    bytes_write(&content->now, at, data, size);
    note(content, false, at, data, size);
}

void content_truncate(struct content *content, size_t size)
{
    bytes_truncate(&content->now, size);
    note(content, true, 0, NULL, size);
}

/* Take the unsynced changes of one content (NULL: all) off the list. */
static void unsynced_drop(const struct content *content)
{
    struct unsynced **link = &unsynced;

    while (*link) {
        struct unsynced *op = *link;

        if (content && op->content != content) {
            link = &op->next;
            continue;
        }
        *link = op->next;
        free(op);
    }
    unsynced_end = link;
}

/* As on the file systems SQLite knows: a synced new file has its name. */
void content_sync(struct content *content)
{
    for (const struct unsynced *op = unsynced; op; op = op->next)
        if (op->content == content && op->is_truncation)
            bytes_truncate(&content->safe, op->size);
        else if (op->content == content && !op->is_cut)
            bytes_write(&content->safe, op->at, op->data, op->size);
    unsynced_drop(content);
    for (uint32_t i = 0; i < name_count; i++)
        if (names[i].now == content)
            name_sync(&names[i]);
}

/* ---- names ---- */

struct name *name_find(const char *path)
{
    for (uint32_t i = 0; i < name_count; i++)
        if (strcmp(names[i].path, path) == 0)
            return &names[i];
    return NULL;
}

struct name *name_add(const char *path)
{
    struct name *name = name_find(path);

    if (name)
        return name;
    EXPECT(name_count < DISK_NAMES);
    EXPECT(strlen(path) < sizeof name->path);
    name = &names[name_count++];
    *name = (struct name){ 0 };
    memcpy(name->path, path, strlen(path) + 1);
    return name;
}

void name_point(struct name *name, struct content *content)
{
    name->now = content;
    EXPECT(name->target_count < DISK_TARGETS);
    name->targets[name->target_count++] = content;
}

void name_sync(struct name *name)
{
    name->safe = name->now;
    name->target_count = 0;
}

/* ---- the power cut ---- */

static uint64_t draw(uint64_t *state)
{
    uint64_t n = *state += UINT64_C(0x9E3779B97F4A7C15);

    n = (n ^ n >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    n = (n ^ n >> 27) * UINT64_C(0x94D049BB133111EB);
    return n ^ n >> 31;
}

enum fate { KEPT, LOST, TORN };

/* Schedules that chance alone would seldom draw: all, none, all but the last, a beginning. */
static enum fate fate_of(uint64_t seed, uint64_t *random, size_t index, size_t count)
{
    switch (seed % 8) {
    case 0:
        return LOST;
    case 1:
        return KEPT;
    case 2:
        return index + 1 == count ? LOST : KEPT;
    case 3:
        return index < seed / 8 % (count + 1) ? KEPT : LOST;
    case 4:
        return index + 1 == count ? TORN : KEPT;
    default:
        return (enum fate)(draw(random) % 3);
    }
}

/* Each sector for itself; one in ten is neither the old nor the new. */
static void tear(const struct unsynced *op, uint64_t *random)
{
    for (size_t from = 0; from < op->size;) {
        size_t to = from + SECTOR - (op->at + from) % SECTOR;

        to = to < op->size ? to : op->size;
        if (draw(random) % 2) {
            bytes_write(&op->content->safe, op->at + from, op->data + from, to - from);
            if (draw(random) % 10 == 0)
                op->content->safe.data[op->at + from] ^= 0x5A;
        }
        from = to;
    }
}

static void meet_fate(const struct unsynced *op, enum fate fate, uint64_t *random)
{
    struct bytes *safe = &op->content->safe;

    lost += fate != KEPT;
    if (fate == LOST)
        return;
    if (op->is_truncation) {
        if (fate == KEPT)
            bytes_truncate(safe, op->size);
    } else if (fate == KEPT)
        bytes_write(safe, op->at, op->data, op->size);
    else
        tear(op, random);
}

static void names_meet_fate(uint64_t seed, uint64_t *random)
{
    for (uint32_t i = 0; i < name_count; i++) {
        struct name *name = &names[i];
        uint64_t chosen = draw(random) % (name->target_count + 1);

        if (seed % 8 == 0)
            chosen = 0;
        else if (seed % 8 == 1)
            chosen = name->target_count;
        if (chosen > 0)
            name->safe = name->targets[chosen - 1];
        name->now = name->safe;
        name->target_count = 0;
    }
}

void disk_power_on(uint64_t seed)
{
    uint64_t random = seed;
    size_t count = 0, index = 0;

    EXPECT(disk_is_closed());
    lost = 0;
    for (const struct unsynced *op = unsynced; op; op = op->next)
        count++;
    for (const struct unsynced *op = unsynced; op; op = op->next)
        meet_fate(op, fate_of(seed, &random, index++, count), &random);
    unsynced_drop(NULL);
    names_meet_fate(seed, &random);
    for (struct content *content = contents; content; content = content->next)
        bytes_copy(&content->now, &content->safe);
    disk_disarm();
}

unsigned disk_lost(void)
{
    return lost;
}

void disk_forget(void)
{
    unsynced_drop(NULL);
    while (contents) {
        struct content *content = contents;

        contents = content->next;
        free(content->now.data);
        free(content->safe.data);
        free(content);
    }
    name_count = 0;
}
