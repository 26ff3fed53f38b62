/* witness_file.c - the sidecar FILE-head: a copy of the log's last root outside of the database.
 *
 * A WAL that lost its end to one flipped bit, and a file that was restored from a copy, are valid
 * but older stores. So a position of the log, its root and its time are kept beside it: one line of
 * fixed size with a checksum, overwritten in place. It is written after its commit is durable and
 * never synced, so it may be behind but never ahead. It is behind by at most WITNESS_COMMITS
 * commits or WITNESS_MS during a run of commits, and by none once the store rests (a commit of rows
 * alone) or is closed.
 *
 * If the log contradicts it, it is not overwritten until an operator accepts what was found. That
 * adds a line of its own behind the first. A store inside a host's file has no FILE-head. */
#include "base/assert.h"
#include "base/time.h"
#include "sqlite_int.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define WITNESS_COMMITS 16u
#define WITNESS_MS      20
#define READS           3
#define LINE_SIZE       512u /* a sector: a power cut leaves the old line or the new one */
#define LINE_START                                                                                 \
    "{\"pawl\":\"head\",\"format\":1,\"store\":\"%s\",\"position\":%llu,\"root\":\"%s\",\"at\":%"  \
    "lld,"
#define LINE_SCAN                                                                                  \
    "{\"pawl\":\"head\",\"format\":1,\"store\":\"%32[0-9a-f]\",\"position\":%llu,"                 \
    "\"root\":\"%64[0-9a-f]\",\"at\":%lld,"

struct witness_line {
    char store[2 * STORE_ID_SIZE + 1], root[2 * SHA_SIZE + 1];
    unsigned long long pos;
    long long at_ms;
};

/* ---- The line ---- */

static void line_print(struct sha *sha, const struct witness_line *line, char out[LINE_SIZE + 1])
{
    uint8_t hash[SHA_SIZE];
    char check[17];
    size_t size = (size_t)snprintf(out, LINE_SIZE, LINE_START, line->store, line->pos, line->root,
                                   line->at_ms);

    ASSERT(size < LINE_SIZE - 40);
    sha_once(sha, (str){ out, size }, hash);
    sha_hex(hash, 8, check);
    size += (size_t)snprintf(out + size, LINE_SIZE - size, "\"check\":\"%s\"}", check);
    memset(out + size, ' ', LINE_SIZE - 1 - size);
    out[LINE_SIZE - 1] = '\n';
    out[LINE_SIZE] = '\0';
}

/* A line is valid only if it equals, byte for byte, what we would write. */
static bool line_read(struct sha *sha, const char text[LINE_SIZE + 1], struct witness_line *out)
{
    char again[LINE_SIZE + 1];

    if (sscanf(text, LINE_SCAN, out->store, &out->pos, out->root, &out->at_ms) != 4)
        return false;
    line_print(sha, out, again);
    return memcmp(text, again, LINE_SIZE) == 0;
}

static void line_of(const struct store_tip *tip, struct witness_line *out)
{
    sha_hex(tip->store_id, STORE_ID_SIZE, out->store);
    sha_hex(tip->root, SHA_SIZE, out->root);
    out->pos = tip->pos;
    out->at_ms = tip->at_ms;
}

/* ---- Writing ---- */

static bool open_file(struct sqlite_store *store)
{
    if (store->witness.fd < 0)
        store->witness.fd = sqlite_open_beside(store->path, store->witness.path);
    return store->witness.fd >= 0;
}

/* A failed write fails nothing else: the log is the truth. */
void witness_flush(struct sqlite_store *store)
{
    struct witness_file *witness = &store->witness;
    char text[LINE_SIZE + 1];
    struct witness_line line;

    if (witness->is_off || witness->is_held || witness->behind == 0 || !store->tip_known ||
        store->tip.pos == 0)
        return;
    line_of(&store->tip, &line);
    line_print(witness->sha, &line, text);
    if (!open_file(store) || pwrite(witness->fd, text, LINE_SIZE, 0) != (ssize_t)LINE_SIZE)
        return;
    witness->behind = 0;
    witness->written_at_ms = store->env->tick_ms(store->env);
}

/* After a durable commit. One without records means that the store is at rest. */
void witness_note(struct sqlite_store *store, bool is_at_rest)
{
    struct witness_file *witness = &store->witness;

    witness->behind += !is_at_rest;
    if (is_at_rest || witness->behind >= WITNESS_COMMITS ||
        store->env->tick_ms(store->env) - witness->written_at_ms >= WITNESS_MS)
        witness_flush(store);
}

/* ---- Judging ---- */

static bool read_line(const char *path, char out[LINE_SIZE + 1], uint32_t *accepted)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char more[4096];
    ssize_t size;

    *accepted = 0;
    if (fd < 0)
        return false;
    size = pread(fd, out, LINE_SIZE, 0);
    out[size > 0 ? size : 0] = '\0';
    for (off_t at = LINE_SIZE; (size = pread(fd, more, sizeof more, at)) > 0; at += size)
        for (ssize_t i = 0; i < size; i++)
            *accepted += more[i] == '\n';
    close(fd);
    return true;
}

/* Does the log have that root at that position? */
static pawl_status compare(struct sqlite_store *store, struct scope *scope, const struct witness_line *line,
                           struct head_witness *out)
{
    char root[2 * SHA_SIZE + 1] = "";
    struct record record;
    pawl_status status = sqlite_find_row(
        &store->base, scope, &(struct find_query){ FIND_RECORD, { line->pos } }, &record);

    if (status != PAWL_OK && status != PAWL_NOT_KNOWN)
        return status;
    if (status == PAWL_OK && record.has_root)
        sha_hex(record.root, SHA_SIZE, root);
    out->verdict = status == PAWL_NOT_KNOWN   ? WITNESS_LOG_SHORT
                   : strcmp(root, line->root) ? WITNESS_LOG_DIFFERS
                                              : WITNESS_AGREES;
    return PAWL_OK;
}

/* Another process may be writing the line just now: what is not valid is read again. False: there
 * is no such file. */
static bool read_head(const struct sqlite_store *store, struct sha *sha, struct witness_line *line,
                      struct head_witness *out)
{
    char text[LINE_SIZE + 1];

    out->verdict = WITNESS_UNREADABLE;
    for (int i = 0; out->verdict == WITNESS_UNREADABLE && i < READS; i++) {
        if (!read_line(store->witness.path, text, &out->accepted))
            return false;
        if (line_read(sha, text, line)) {
            out->verdict = WITNESS_AGREES;
            out->pos = line->pos;
            out->at_ms = line->at_ms;
        }
    }
    return true;
}

static pawl_status judge(struct sqlite_store *store, struct scope *scope, const struct witness_line *line,
                         struct head_witness *out)
{
    char id[2 * STORE_ID_SIZE + 1];
    struct store_tip tip;

    TRY(sqlite_tip(&store->base, scope, &tip));
    out->log_pos = tip.pos;
    if (out->verdict == WITNESS_UNREADABLE)
        return PAWL_OK;
    sha_hex(tip.store_id, STORE_ID_SIZE, id);
    if (strcmp(id, line->store) == 0)
        return compare(store, scope, line, out);
    out->verdict = WITNESS_FOREIGN;
    memcpy(out->other, line->store, sizeof out->other);
    return PAWL_OK;
}

/* Reads the line before the log: writers write the log first, so the line is never ahead. Threads
 * ask while the drain writes, so each call has a hash of its own. */
static pawl_status look(struct sqlite_store *store, struct scope *scope, struct head_witness *out)
{
    struct sha *sha;
    struct witness_line line;
    bool is_there;

    *out = (struct head_witness){ .verdict = WITNESS_NONE };
    if (store->witness.is_off)
        return PAWL_OK;
    sha = sha_new(store->heap);
    TRY_MEMORY(scope, sha);
    is_there = read_head(store, sha, &line, out);
    sha_free(sha);
    if (is_there)
        return judge(store, scope, &line, out);
    *out = store->witness.set_aside;
    return PAWL_OK;
}

/* At opening and reopening: a line that contradicts the log is evidence, and is kept. */
pawl_status witness_begin(struct sqlite_store *store, struct scope *scope)
{
    struct head_witness found;

    TRY(look(store, scope, &found));
    store->witness.is_held = witness_is_against(&found);
    return PAWL_OK;
}

/* ---- Setting aside ---- */

/* Before a new store gets its name: a FILE-head there belongs to a store whose file is gone. It is
 * evidence of that one and would judge the new one, so it is kept under another name. If it cannot
 * be renamed, the new store finds it and reports it as another store's. */
void witness_set_aside(struct sqlite_store *store)
{
    struct head_witness found = { .verdict = WITNESS_NONE };
    char to[PATH_MAX];
    struct witness_line line;

    if (!read_head(store, store->witness.sha, &line, &found))
        return;
    if (found.verdict == WITNESS_UNREADABLE)
        snprintf(line.store, sizeof line.store, "unreadable");
    snprintf(to, sizeof to, "%.*s-%s", PATH_MAX - 40, store->witness.path, line.store);
    if (rename(store->witness.path, to) != 0)
        return;
    found.verdict = WITNESS_SET_ASIDE;
    snprintf(found.other, sizeof found.other, "%s", line.store);
    store->witness.set_aside = found;
}

/* ---- Accepting ---- */

static void print_accepted(const struct witness_line *now, const char *before, int64_t at_ms, str who,
                           struct buf *out)
{
    json_open(out, '{');
    json_put_text(out, "pawl", "accepted");
    json_put_time(out, "at", at_ms);
    json_put_str(out, "by", who);
    json_put_u64(out, "position", now->pos);
    json_put_text(out, "root", now->root);
    json_put_text(out, "instead_of", before);
    json_close(out, '}');
    buf_byte(out, '\n');
}

static pawl_status put_accepted(struct sqlite_store *store, struct scope *scope,
                                const struct witness_line *now, const char *before, str who)
{
    struct witness_file *witness = &store->witness;
    char text[LINE_SIZE + 1];
    struct buf more;
    bool is_done = open_file(store);
    off_t end;

    buf_init(&more, store->heap, 8192);
    print_accepted(now, before, store->env->now_ms(store->env), who, &more);
    line_print(witness->sha, now, text);
    end = is_done ? lseek(witness->fd, 0, SEEK_END) : 0;
    end = end < (off_t)LINE_SIZE ? (off_t)LINE_SIZE : end;
    is_done = is_done && !more.failed &&
              pwrite(witness->fd, more.data, more.size, end) == (ssize_t)more.size &&
              pwrite(witness->fd, text, LINE_SIZE, 0) == (ssize_t)LINE_SIZE &&
              fsync(witness->fd) == 0;
    buf_fini(&more);
    return is_done ? PAWL_OK : sqlite_fail_file(scope, "writing", witness->path);
}

static pawl_status accept(struct sqlite_store *store, struct scope *scope, str who)
{
    char before[LINE_SIZE + 1] = "";
    struct store_tip tip;
    struct witness_line now;
    uint32_t accepted;

    TRY(sqlite_tip(&store->base, scope, &tip));
    read_line(store->witness.path, before, &accepted);
    before[strcspn(before, " \n")] = '\0';
    if (!str_is_utf8(str_of(before), false))
        snprintf(before, sizeof before, "(unreadable)");
    line_of(&tip, &now);
    TRY(put_accepted(store, scope, &now, before, who));
    store->witness.is_held = false;
    return PAWL_OK;
}

pawl_status sqlite_witness(struct store *base, struct scope *scope, str accepted_by,
                           struct head_witness *out)
{
    struct sqlite_store *store = sqlite_store_of(base);
    pawl_status status = look(store, scope, out);

    return status == PAWL_OK && accepted_by.data && witness_is_against(out)
               ? accept(store, scope, accepted_by)
               : status;
}
