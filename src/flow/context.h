/* context.h - the context of a flow, kept member by member.
 *
 * A put costs what it puts, however large the context is, and a look costs what is looked at. The
 * text is made where it is asked for. A decision puts into a context over the memory's, which it
 * does not change: it holds what the decision puts there, and the rest is seen through it.
 *
 * A put moves its key behind the others, at each level of its path. So the text of a context over
 * another is what it leaves of that one, and then its own members in the order of their puts. */
#ifndef PAWL_FLOW_CONTEXT_H
#define PAWL_FLOW_CONTEXT_H

#include "base/buf.h"
#include "base/scope.h"

struct flow_context;

struct context_node {
    str key;
    str value;       /* JSON; data NULL: an object, by its members */
    size_t key_size; /* as it is printed, with its colon */
    size_t size;     /* of an object: of its text */
    uint32_t count;  /* ... and of the members that are seen in it, ... */
    uint32_t own;    /* ... of which it has so many itself */
    uint64_t stamp;  /* of two members, the later one has the higher */
    struct context_node *parent;
    struct context_node *first, *last, *next, *previous; /* members, in order */
    struct context_node *chain;                          /* in the table, or among free ones */
    const struct context_node *under; /* an object of the context below, seen through this one */
    struct flow_context *in;
};

/* Two areas take turns: what is still used moves to the other one when this one is full, so a flow
 * that puts the same keys for ever stays bounded. */
struct context_texts {
    char *data, *spare;
    size_t used, capacity, spare_capacity;
};

struct flow_context {
    struct context_node root;
    struct context_node **slots; /* members by their object and their key */
    uint32_t slot_count, member_count;
    uint64_t stamp;
    struct context_node *free, *fresh; /* nodes: given back; not used yet */
    uint32_t fresh_count;
    bool is_there;              /* something was put or loaded: else it is left out of snapshots */
    str whole;                  /* the text as it was loaded, until something is put */
    bool is_over;               /* over another: texts stay where they are, and outlast it */
    struct context_texts texts; /* else */
};

/* NULL: no memory. */
struct flow_context *context_new(struct arena *arena);
struct flow_context *context_over(const struct flow_context *below, struct arena *arena);

/* An object that was accepted once (node.h). False: it is not an object, or no memory. */
bool context_load(struct flow_context *context, str text, struct arena *arena);

/* `value` at the dotted `path`, objects made on the way, whatever was there replaced. False: no
 * memory, and then the context means nothing. */
bool context_put(struct flow_context *context, str path, str value, struct arena *arena);

/* The size of its text; and if `value` were put at `key`, which is no path. */
size_t context_size(const struct flow_context *context);
size_t context_size_with(const struct flow_context *context, str key, str value,
                         struct arena *arena);

void context_print(const struct flow_context *context, struct buf *out);
pawl_status context_text(const struct flow_context *context, struct scope *scope, str *out);

/* What lies at the dotted `path`, JSON, as template_walk() finds it in the text. data NULL:
 * nothing, or the arena has failed. */
str context_find(const struct flow_context *context, struct arena *arena, str path);

/* The member with this key, JSON, and how many are before it. data NULL: none, and all are before
 * it; or the arena has failed. */
str context_member(const struct flow_context *context, struct arena *arena, str key,
                   uint32_t *before);

#endif
