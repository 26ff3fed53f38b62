/* context.c - the context of a flow, kept member by member. */
#include "flow/context.h"
#include "base/json_scan.h"
#include "flow/flow_int.h"

#define SLOTS_MIN 8
#define FRESH_MAX 64 /* nodes that are allocated at once */
#define TEXTS_MIN 256

/* ---- Members by their object and their key --------------------------------------------------- */

static uint32_t slot_of(const struct flow_context *context, const struct context_node *object,
                        str key)
{
    uint64_t mixed = str_hash(key) ^ (((uint64_t)(uintptr_t)object >> 4) * 0x9E3779B97F4A7C15u);

    return (uint32_t)(mixed ^ (mixed >> 32)) & (context->slot_count - 1);
}

/* A member that the object itself has. */
static struct context_node *find_own(const struct context_node *object, str key)
{
    const struct flow_context *context = object->in;
    struct context_node *node =
        context->slot_count > 0 ? context->slots[slot_of(context, object, key)] : NULL;

    while (node && (node->parent != object || !str_eq(node->key, key)))
        node = node->chain;
    return node;
}

/* ... or that is seen through it. */
static struct context_node *find(const struct context_node *object, str key)
{
    struct context_node *found = NULL;

    for (; object && !found; object = object->under)
        found = find_own(object, key);
    return found;
}

static void enter(struct flow_context *context, struct context_node *node)
{
    struct context_node **slot = &context->slots[slot_of(context, node->parent, node->key)];

    node->chain = *slot;
    *slot = node;
}

static bool grow_slots(struct flow_context *context, struct arena *arena)
{
    uint32_t count = context->slot_count, wanted = count > 0 ? 2 * count : SLOTS_MIN;
    struct context_node **slots = context->slots;
    struct context_node **grown = ARENA_ARRAY(arena, struct context_node *, wanted);

    if (!grown)
        return false;
    context->slots = grown;
    context->slot_count = wanted;
    for (uint32_t i = 0; i < count; i++)
        for (struct context_node *node = slots[i], *next; node; node = next) {
            next = node->chain;
            enter(context, node);
        }
    return true;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static struct context_node *take_node(struct flow_context *context, struct arena *arena)
{
    struct context_node *node = context->free;

    if (node) {
        context->free = node->chain;
        return node;
    }
    if (context->fresh_count == 0) {
        uint32_t count = context->member_count < FRESH_MAX / 4 ? 4 : FRESH_MAX;

        context->fresh = ARENA_ARRAY(arena, struct context_node, count);
        context->fresh_count = context->fresh ? count : 0;
    }
    return context->fresh_count > 0 ? &context->fresh[--context->fresh_count] : NULL;
}

static void append(struct context_node *object, struct context_node *node)
{
    node->stamp = ++object->in->stamp;
    node->next = NULL;
    node->previous = object->last;
    if (object->last)
        object->last->next = node;
    else
        object->first = node;
    object->last = node;
}

static void unlink_node(struct context_node *node)
{
    struct context_node *object = node->parent;

    if (node->previous)
        node->previous->next = node->next;
    else
        object->first = node->next;
    if (node->next)
        node->next->previous = node->previous;
    else
        object->last = node->previous;
}

/* Depth: that of the paths that were put, which the compiler bounds. */
static void drop_members(struct flow_context *context, struct context_node *object)
{
    for (struct context_node *node = object->first, *next; node; node = next) {
        struct context_node **at = &context->slots[slot_of(context, object, node->key)];

        next = node->next;
        drop_members(context, node);
        while (*at != node)
            at = &(*at)->chain;
        *at = node->chain;
        node->chain = context->free;
        context->free = node;
        context->member_count--;
    }
    object->first = object->last = NULL;
    object->own = 0;
    object->under = NULL;
}

static bool is_plain(str key)
{
    for (size_t i = 0; i < key.size; i++) {
        unsigned char byte = (unsigned char)key.data[i];

        if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\')
            return false;
    }
    return true;
}

/* "key": as json_key_str() prints it; 0: no memory. */
static size_t printed_size(str key, struct arena *arena)
{
    struct buf buf;
    size_t size;

    if (is_plain(key))
        return key.size + 3;
    buf_init(&buf, arena->heap, 0);
    json_key_str(&buf, key);
    size = buf.failed ? 0 : buf.size;
    buf_fini(&buf);
    return size;
}

static size_t member_size(const struct context_node *node)
{
    return node->key_size + (node->value.data ? node->value.size : node->size);
}

/* A new member, the last one; its object does not count it yet. NULL: no memory. */
static struct context_node *add_node(struct context_node *object, str key, struct arena *arena)
{
    struct flow_context *context = object->in;
    size_t key_size = printed_size(key, arena);
    struct context_node *node;

    if (key_size == 0 ||
        (context->member_count >= context->slot_count && !grow_slots(context, arena)))
        return NULL;
    node = take_node(context, arena);
    if (!node)
        return NULL;
    *node = (struct context_node){
        .key = key, .key_size = key_size, .size = 2, .parent = object, .in = context
    };
    append(object, node);
    enter(context, node);
    object->own++;
    context->member_count++;
    return node;
}

/* A member was `before` bytes (0: there was none) and is `after` now. */
static void count_member(struct context_node *object, size_t before, size_t after)
{
    if (before == 0) {
        object->size += object->count > 0; /* a comma */
        object->count++;
    }
    object->size = object->size - before + after;
}

/* ---- An object's text taken apart ------------------------------------------------------------ */

/* The members stay where they are in the text. */
static bool read_members(struct context_node *object, str text, struct arena *arena)
{
    struct json_scan scan;
    str raw, value;

    json_scan_begin(&scan, text);
    while (scan.is_object && json_scan_next(&scan, &raw, &value)) {
        str key = json_unescape(arena, raw);
        struct context_node *node = key.data ? add_node(object, key, arena) : NULL;

        if (!node)
            return false;
        node->value = value;
        count_member(object, 0, member_size(node));
    }
    return true;
}

/* What a path leads through becomes an object: with its members if it is one. */
static bool make_object(struct context_node *node, struct arena *arena)
{
    str text = node->value;

    if (!text.data)
        return true;
    node->value = STR_NONE;
    node->size = 2;
    node->count = 0;
    return read_members(node, text, arena);
}

/* ---- Texts of its own ------------------------------------------------------------------------ */

static str move_text(struct context_texts *texts, str text)
{
    char *at = texts->data + texts->used;

    if (text.size > 0)
        memcpy(at, text.data, text.size);
    texts->used += text.size;
    return (str){ at, text.size };
}

static void move_members(struct context_texts *texts, struct context_node *object)
{
    for (struct context_node *node = object->first; node; node = node->next) {
        node->key = move_text(texts, node->key);
        if (node->value.data)
            node->value = move_text(texts, node->value);
        else
            move_members(texts, node);
    }
}

/* What is used goes to the other area. The printed size is at least that of the texts. */
static bool make_room(struct flow_context *context, size_t size, struct arena *arena)
{
    struct context_texts *texts = &context->texts, before = *texts;
    size_t needed = context->root.size + size, capacity = TEXTS_MIN;

    if (texts->capacity - texts->used >= size)
        return true;
    while (capacity < needed + needed / 2)
        capacity *= 2;
    if (texts->spare_capacity < capacity) {
        texts->spare = arena_alloc(arena, capacity);
        texts->spare_capacity = texts->spare ? capacity : 0;
    }
    if (!texts->spare)
        return false;
    *texts = (struct context_texts){ .data = texts->spare,
                                     .capacity = texts->spare_capacity,
                                     .spare = before.data,
                                     .spare_capacity = before.capacity };
    move_members(texts, &context->root);
    return true;
}

static str keep(struct flow_context *context, str text)
{
    return context->is_over ? text : move_text(&context->texts, text);
}

/* ---- Putting --------------------------------------------------------------------------------- */

/* A member of its own in place of one that is seen through the object. */
static struct context_node *cover(struct context_node *object, str key,
                                  const struct context_node *below, struct arena *arena)
{
    struct flow_context *context = object->in;
    struct context_node *node = add_node(object, keep(context, key), arena);

    if (!node || !below)
        return node;
    node->value = below->value;
    if (!below->value.data) {
        node->under = below;
        node->size = below->size;
        node->count = below->count;
    }
    return node;
}

/* The depth is that of the path. */
static bool put(struct context_node *object, str path, str value, struct arena *arena)
{
    struct flow_context *context = object->in;
    str rest = str_after(path, '.'), key = str_before(path, '.'); /* data NULL: it ends here */
    struct context_node *seen = find(object, key), *own = seen;
    size_t before = seen ? member_size(seen) : 0;

    if (!seen || seen->parent != object)
        own = cover(object, key, seen, arena);
    if (!own)
        return false;
    unlink_node(own);
    append(object, own);
    if (rest.data) {
        if (!make_object(own, arena) || !put(own, rest, value, arena))
            return false;
    } else {
        drop_members(context, own);
        own->value = keep(context, value);
    }
    count_member(object, before, member_size(own));
    return true;
}

bool context_put(struct flow_context *context, str path, str value, struct arena *arena)
{
    context->whole = STR_NONE;
    context->is_there = true;
    if (!context->is_over && !make_room(context, path.size + value.size, arena))
        return false;
    return put(&context->root, path, value, arena);
}

/* ---- Making one ------------------------------------------------------------------------------ */

struct flow_context *context_new(struct arena *arena)
{
    struct flow_context *context = ARENA_NEW(arena, struct flow_context);

    if (context)
        context->root = (struct context_node){ .size = 2, .in = context };
    return context;
}

struct flow_context *context_over(const struct flow_context *below, struct arena *arena)
{
    struct flow_context *context = context_new(arena);

    if (!context)
        return NULL;
    context->is_over = context->is_there = true;
    context->whole = below->whole;
    context->root.under = &below->root;
    context->root.size = below->root.size;
    context->root.count = below->root.count;
    return context;
}

bool context_load(struct flow_context *context, str text, struct arena *arena)
{
    struct json_scan scan;

    json_scan_begin(&scan, text);
    if (!scan.is_object || !make_room(context, text.size, arena))
        return false;
    drop_members(context, &context->root);
    context->root.size = 2;
    context->root.count = 0;
    context->is_there = true;
    context->whole = move_text(&context->texts, text);
    return read_members(&context->root, context->whole, arena);
}

/* ---- Looking --------------------------------------------------------------------------------- */

size_t context_size(const struct flow_context *context)
{
    return context->whole.data ? context->whole.size : context->root.size;
}

size_t context_size_with(const struct flow_context *context, str key, str value,
                         struct arena *arena)
{
    const struct context_node *seen = find(&context->root, key);
    struct context_node object = { .size = context->root.size, .count = context->root.count };

    count_member(&object, seen ? member_size(seen) : 0, printed_size(key, arena) + value.size);
    return object.size;
}

static void print_object(const struct context_node *object, struct buf *out);

/* Those of `object` that are seen through `top`, what is under it first. */
static void print_members(const struct context_node *top, const struct context_node *object,
                          struct buf *out)
{
    if (object->under)
        print_members(top, object->under, out);
    for (const struct context_node *node = object->first; node; node = node->next) {
        if (object != top && find(top, node->key) != node)
            continue;
        json_key_str(out, node->key);
        if (node->value.data)
            json_raw(out, node->value);
        else
            print_object(node, out);
    }
}

static void print_object(const struct context_node *object, struct buf *out)
{
    json_open(out, '{');
    print_members(object, object, out);
    json_close(out, '}');
}

void context_print(const struct flow_context *context, struct buf *out)
{
    if (context->whole.data)
        json_raw(out, context->whole);
    else
        print_object(&context->root, out);
}

pawl_status context_text(const struct flow_context *context, struct scope *scope, str *out)
{
    struct buf buf;

    buf_init(&buf, scope->arena.heap, 0);
    context_print(context, &buf);
    *out = buf_take(&buf, &scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}

static str object_text(const struct context_node *object, struct arena *arena)
{
    struct buf buf;

    buf_init(&buf, arena->heap, 0);
    print_object(object, &buf);
    arena->failed = arena->failed || buf.failed;
    return buf_take(&buf, arena);
}

/* As template_walk(): of the keys that the path can begin with the longest is tried first. */
static str walk(const struct context_node *node, struct arena *arena, str path)
{
    str found = STR_NONE;

    if (node->value.data)
        return template_walk(arena, node->value, path);
    if (!path.data)
        return object_text(node, arena);
    for (size_t size = path.size + 1; size-- > 0 && !found.data;) {
        const struct context_node *member;

        if (size < path.size && path.data[size] != '.')
            continue;
        member = find(node, (str){ path.data, size });
        if (member)
            found = walk(member, arena, path_after(path, size));
    }
    return found;
}

/* How many members of its object come before it: counted from the end that is nearer. */
static uint32_t own_place(const struct context_node *node)
{
    const struct context_node *before = node, *after = node;
    uint32_t count = 0;

    while (before->previous && after->next) {
        before = before->previous;
        after = after->next;
        count++;
    }
    return before->previous ? node->parent->own - 1 - count : count;
}

/* Of those that come before `node` in its object, how many are hidden by members of what lies over
 * it? */
static uint32_t hidden_before(const struct context_node *top, const struct context_node *node)
{
    const struct context_node *object = node->parent;
    uint32_t count = 0;

    for (const struct context_node *over = top; over != object; over = over->under)
        for (const struct context_node *own = over->first; own; own = own->next) {
            const struct context_node *below = find(object, own->key);

            count += below && (below->parent != object || below->stamp < node->stamp) &&
                     find(top, own->key) == own;
        }
    return count;
}

str context_member(const struct flow_context *context, struct arena *arena, str key,
                   uint32_t *before)
{
    const struct context_node *root = &context->root, *node = find(root, key), *object;

    *before = root->count;
    if (!node)
        return STR_NONE;
    object = node->parent;
    *before = object->count - object->own + own_place(node) - hidden_before(root, node);
    return node->value.data ? node->value : object_text(node, arena);
}

str context_find(const struct flow_context *context, struct arena *arena, str path)
{
    if (!path.data && context->whole.data)
        return context->whole;
    return walk(&context->root, arena, path);
}
