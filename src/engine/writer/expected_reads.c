/* expected_reads.c - what the requests of a drain are about to read from a store that is far
 * away: one round trip for all of them, and none where everything is in memory. */
#include "engine/parts.h"

#define AHEAD_MOST 512u /* of each kind; what is beyond is read by itself */

struct expected_reads {
    uint64_t instances[AHEAD_MOST];
    uint8_t keys[AHEAD_MOST][KEY_ID_SIZE];
    str texts[AHEAD_MOST];
    struct expectation all;
};

static void add_instance(struct engine *engine, struct expected_reads *ahead, str id)
{
    uint8_t random[ID_RANDOM_SIZE];
    const struct head *head;
    uint64_t number;

    if (ahead->all.instance_count == AHEAD_MOST || !id_parse(id, &number, random))
        return;
    guard_lock(&engine->lock);
    head = heads_find(&engine->writer.heads, number);
    if (!head || head->flags & HEAD_RAW)
        ahead->instances[ahead->all.instance_count++] = number;
    guard_unlock(&engine->lock);
}

static void add_key(struct expected_reads *ahead, const uint8_t *key)
{
    if (key && ahead->all.key_count < AHEAD_MOST)
        memcpy(ahead->keys[ahead->all.key_count++], key, KEY_ID_SIZE);
}

static void add_text(struct engine *engine, struct expected_reads *ahead, str text)
{
    if (text.data && ahead->all.text_count < AHEAD_MOST &&
        !intern_has(&engine->writer.interned, text))
        ahead->texts[ahead->all.text_count++] = text;
}

static void add_request(struct engine *engine, struct expected_reads *ahead,
                        const struct request *request)
{
    for (size_t i = 0; i < request->fire_count; i++) {
        const struct fire_args *args = &request->fires[i].args;

        add_instance(engine, ahead, args->id);
        add_key(ahead, args->key);
        add_text(engine, ahead, args->actor);
    }
    if (request->create) {
        add_key(ahead, request->create->args->key);
        add_text(engine, ahead, request->create->args->actor);
        add_text(engine, ahead, request->create->args->subject);
    }
    if (request->decide)
        add_key(ahead, request->decide->key);
}

/* What fails here fails again where it is read. */
void writer_read_ahead(struct engine *engine, const struct request *list)
{
    struct expected_reads *ahead;

    ASSERT_DRAINING(engine);
    if (!engine->store->ops->expect || !list)
        return;
    ahead = ARENA_NEW(&engine->writer.scope.arena, struct expected_reads);
    if (!ahead)
        return;
    ahead->all = (struct expectation){ .instances = ahead->instances,
                                       .keys = (const uint8_t(*)[KEY_ID_SIZE])ahead->keys,
                                       .texts = ahead->texts,
                                       .rows = EXPECT_HEADS | EXPECT_ROWS | EXPECT_RECORDS };
    for (const struct request *request = list; request; request = request->next)
        add_request(engine, ahead, request);
    if (ahead->all.instance_count + ahead->all.key_count + ahead->all.text_count > 0)
        (void)store_expect(engine->store, &engine->writer.scope, &ahead->all);
}
