/* rights.h - who may create what, and actor names that are reserved for the engine.
 *
 * A list of scopes is "read,write:order", as a token has it: words, each for all definitions or for
 * one. *Rights* are the definitions whose instances a caller may create: names in byte order, each
 * once, with commas between them; data NULL: all definitions. */
#ifndef PAWL_MODEL_RIGHTS_H
#define PAWL_MODEL_RIGHTS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

/* Names of the engine's own actors begin with this: pawl/timer, pawl/parent, ... */
#define ACTOR_RESERVED "pawl/"
#define ACTOR_RESERVED_WORDS                                                                       \
    "begins with '" ACTOR_RESERVED "', which is reserved for the engine: use another name"
bool actor_is_reserved(str actor);

/* Takes the next scope off a list; its definition is absent if it names none. false: no more. */
bool scope_next(str *list, str *word, str *definition);

/* What a holder of these scopes may create; with `defines`, what its definitions may create: all
 * that it may create or define. false: no memory. */
bool rights_of(struct arena *arena, str scopes, bool defines, str *out);
bool rights_allow(str rights, str definition); /* an inline one (data NULL): only without limits */
bool rights_meet(struct arena *arena, str a, str b, str *out); /* both allow it; false: no memory */
bool rights_within(str inner, str outer); /* all that `inner` allows, `outer` does too */
bool rights_are_valid(str rights);        /* names, in order, each once */

/* What the starter of an instance fixed: what it may create (data NULL: no limit), and which
 * actions of the machine that started it its end fires, as {"instance":ID,"completed":ACTION,
 * "failed":ACTION,"cancelled":ACTION} without those that are not declared (data NULL: none). */
struct starter {
    str rights, on_end;
};
bool starter_is_empty(const struct starter *starter);
/* The body of its rights record; read back into the arena of the body. False: it is not one. */
void starter_print(struct buf *out, const struct starter *starter);
struct node;
bool starter_read(const struct node *body, struct starter *out);

/* How rights are recorded: the member of a define record (nothing if there is no limit), and
 * NAME@VERSION, the id of the row of a version that has them. */
void rights_member(struct buf *out, str rights);
/* The body of the define record of a version. */
struct definition_row;
void define_body(struct buf *out, const struct definition_row *row, str rights);
void rights_id(struct buf *out, str name, uint32_t version);
/* As a list of scopes: write:NAME for each. */
void rights_scopes(struct buf *out, str rights);

#endif
