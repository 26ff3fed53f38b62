/* node_yaml.c - libyaml's events to nodes. libyaml reads; what a scalar means, and what
 * is allowed, is decided here and in yaml_scalar.c. */
#include "base/node_int.h"
#include "base/text_int.h"
#include <stdio.h>
#include <yaml.h>

#define SHOWN_SIZE_MAX 64 /* of a word of the user's in an error */

struct yaml_reader {
    struct tree tree;
    yaml_parser_t parser;
    str text;
    /* libyaml counts characters, we count bytes: the place reached so far in both. */
    size_t characters, at, line_start;
    uint32_t line;
    struct place key_place;
    str key;
    bool has_key, has_document, is_done;
};

/* The size of the line break at `at`, 0 if no break is there; the same breaks as libyaml's. */
static size_t break_size(str text, size_t at)
{
    str rest = str_from(text, at);

    if (str_starts(rest, STR("\r\n")))
        return 2;
    if (rest.data[0] == '\n' || rest.data[0] == '\r')
        return 1;
    if (str_starts(rest, STR("\xC2\x85")))
        return 2;
    return str_starts(rest, STR("\xE2\x80\xA8")) || str_starts(rest, STR("\xE2\x80\xA9")) ? 3 : 0;
}

/* Marks come in order, so walking from the last one keeps a whole text linear. */
static struct place place_of(struct yaml_reader *reader, yaml_mark_t mark)
{
    if (mark.index < reader->characters)
        return (struct place){ (uint32_t)mark.line + 1, (uint32_t)mark.column + 1 };
    while (reader->characters < mark.index && reader->at < reader->text.size) {
        size_t line_break = break_size(reader->text, reader->at);
        size_t size = utf8_size(str_from(reader->text, reader->at));

        reader->at += line_break > 0 ? line_break : size > 0 ? size : 1;
        reader->characters += reader->text.data[reader->at - 1] == '\n' && line_break == 2 ? 2 : 1;
        if (line_break > 0) {
            reader->line++;
            reader->line_start = reader->at;
        }
    }
    return (struct place){ reader->line, (uint32_t)(reader->at - reader->line_start + 1) };
}

/* From the start of the text: for errors only. */
static struct place place_of_offset(const struct yaml_reader *reader, size_t offset)
{
    struct place place = { 1, 1 };
    size_t line_start = 0, size;

    for (size_t at = 0; at < offset && at < reader->text.size; at += size) {
        size = break_size(reader->text, at);
        if (size > 0) {
            place.line++;
            line_start = at + size;
        } else
            size = 1;
    }
    place.column = (uint32_t)((offset > line_start ? offset - line_start : 0) + 1);
    return place;
}

static pawl_status fail_word(struct yaml_reader *reader, struct place place, const char *expected,
                             const char *mark, str word)
{
    char found[SHOWN_SIZE_MAX + 8];

    word = utf8_head(word, SHOWN_SIZE_MAX);
    (void)snprintf(found, sizeof found, "%s%.*s", mark, STR_ARG(word));
    return tree_fail(&reader->tree, place, expected, found);
}

/* ---- Scalars ------------------------------------------------------------------------- */

/* What a tag asks for. False if it is not of the core schema. */
static bool kind_from_tag(const char *tag, enum yaml_kind *out)
{
    static const struct {
        const char *tag;
        enum yaml_kind kind;
    } tags[] = {
        { "!", YAML_STR },
        { YAML_STR_TAG, YAML_STR },
        { YAML_NULL_TAG, YAML_NULL },
        { YAML_BOOL_TAG, YAML_BOOL },
        { YAML_INT_TAG, YAML_INT },
        { YAML_FLOAT_TAG, YAML_FLOAT },
    };

    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
        if (strcmp(tag, tags[i].tag) == 0) {
            *out = tags[i].kind;
            return true;
        }
    return false;
}

static str scalar_text(const yaml_event_t *event)
{
    return (str){ (const char *)event->data.scalar.value, event->data.scalar.length };
}

/* The kind of a scalar by its tag, if it has one, else by its look. */
static pawl_status scalar_kind(struct yaml_reader *reader, const yaml_event_t *event,
                               struct place place, enum yaml_kind *out)
{
    const char *tag = (const char *)event->data.scalar.tag;
    str text = scalar_text(event);
    enum yaml_kind by_look = yaml_resolve(text), by_tag;

    if (!tag) {
        *out = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? by_look : YAML_STR;
        return PAWL_OK;
    }
    if (!kind_from_tag(tag, &by_tag))
        return fail_word(reader, place, "a tag of the core schema", "", str_of(tag));
    if (by_tag == YAML_FLOAT && by_look == YAML_INT)
        by_tag = YAML_INT;
    if (by_tag != YAML_STR && by_tag != by_look && by_look != YAML_NOT_FINITE)
        return fail_word(reader, place, "a value that fits its tag", "", text);
    *out = by_tag == YAML_STR ? YAML_STR : by_look;
    return PAWL_OK;
}

static pawl_status fill_number(struct yaml_reader *reader, struct node *node, str text)
{
    struct place place = { node->line, node->column };

    if (!yaml_number(&reader->tree.scope->arena, text, &node->text))
        return fail_word(reader, place, "a number of at most 64 bits", "", text);
    return node->text.data ? PAWL_OK : scope_no_memory(reader->tree.scope);
}

static pawl_status copy_text(struct yaml_reader *reader, struct place place, str text, str *out)
{
    if (str_has(text, '\0'))
        return tree_fail(&reader->tree, place, "a text without NUL", "one");
    *out = arena_str(&reader->tree.scope->arena, text);
    return out->data ? PAWL_OK : scope_no_memory(reader->tree.scope);
}

static pawl_status add_node(struct yaml_reader *reader, enum node_kind kind, struct place place,
                            struct node **out)
{
    str key = reader->has_key ? reader->key : STR_NONE;

    reader->has_key = false;
    return tree_add(&reader->tree, kind, place, key, reader->key_place, out);
}

static pawl_status add_scalar(struct yaml_reader *reader, const yaml_event_t *event,
                              struct place place)
{
    static const enum node_kind kinds[] = {
        [YAML_NULL] = NODE_NULL,    [YAML_BOOL] = NODE_BOOL,  [YAML_INT] = NODE_NUMBER,
        [YAML_FLOAT] = NODE_NUMBER, [YAML_STR] = NODE_STRING,
    };
    str text = scalar_text(event);
    enum yaml_kind kind = YAML_STR;
    struct node *node;

    TRY(scalar_kind(reader, event, place, &kind));
    if (kind == YAML_NOT_FINITE)
        return fail_word(reader, place, "a finite number", "", text);
    TRY(add_node(reader, kinds[kind], place, &node));
    node->is_missing = kind == YAML_NULL && text.size == 0 && !event->data.scalar.tag;
    node->truth = kind == YAML_BOOL && (text.data[0] == 't' || text.data[0] == 'T');
    if (node->kind == NODE_NUMBER)
        return fill_number(reader, node, text);
    return node->kind == NODE_STRING ? copy_text(reader, place, text, &node->text) : PAWL_OK;
}

/* A key is the scalar's text, whatever it looks like. */
static pawl_status take_key(struct yaml_reader *reader, const yaml_event_t *event,
                            struct place place)
{
    const char *tag = (const char *)event->data.scalar.tag;
    enum yaml_kind ignored;

    if (tag && !kind_from_tag(tag, &ignored))
        return fail_word(reader, place, "a tag of the core schema", "", str_of(tag));
    reader->has_key = true;
    reader->key_place = place;
    return copy_text(reader, place, scalar_text(event), &reader->key);
}

/* ---- Events -------------------------------------------------------------------------- */

static bool is_key_next(const struct yaml_reader *reader)
{
    const struct node *top = tree_top(&reader->tree);

    return top && top->kind == NODE_OBJECT && !reader->has_key;
}

/* A map as the key of a map is nearly always a template without quotes. place_of() has left `at`
 * at its inner brace if it is a value, and at the outer one if it is a key. */
static pawl_status fail_key(struct yaml_reader *reader, enum node_kind kind, struct place place)
{
    struct yaml_complaint complaint;
    bool is_value =
        reader->at > 0 && yaml_explain_template(reader->text, reader->at - 1, &complaint);

    if (!is_value && !yaml_explain_template(reader->text, reader->at, &complaint))
        return tree_fail(&reader->tree, place, "a scalar as a key", node_kind_name(kind));
    place.column -= is_value;
    return tree_fail(&reader->tree, place, complaint.expected, complaint.found);
}

static pawl_status open_node(struct yaml_reader *reader, enum node_kind kind,
                             const yaml_char_t *tag, struct place place)
{
    const char *core = kind == NODE_OBJECT ? YAML_MAP_TAG : YAML_SEQ_TAG;
    struct node *node;

    if (is_key_next(reader))
        return fail_key(reader, kind, place);
    if (tag && strcmp((const char *)tag, core) != 0 && strcmp((const char *)tag, "!") != 0)
        return fail_word(reader, place, "a tag of the core schema", "", str_of((const char *)tag));
    TRY(add_node(reader, kind, place, &node));
    return tree_open(&reader->tree, node);
}

/* May the line at `at` stand between documents: blank, a comment, a directive, "..."? */
static bool is_between(str text, size_t at)
{
    return memchr("%# \t", text.data[at], 4) || break_size(text, at) > 0 ||
           str_starts(str_from(text, at), STR("..."));
}

/* Directives stand before a document, among blank lines and comments. %TAG is refused
 * there: only core tags are known, and libyaml takes quadratic time over many. */
static pawl_status check_directives(struct yaml_reader *reader, size_t at)
{
    str text = reader->text;

    while (at < text.size && is_between(text, at)) {
        if (str_starts(str_from(text, at), STR("%TAG")))
            return tree_fail(&reader->tree, place_of_offset(reader, at), "no %TAG directive",
                             "one");
        while (at < text.size && break_size(text, at) == 0)
            at++;
        at += at < text.size ? break_size(text, at) : 0;
    }
    return PAWL_OK;
}

static pawl_status begin_document(struct yaml_reader *reader, struct place place)
{
    if (reader->has_document)
        return tree_fail(&reader->tree, place, "one document", "another");
    reader->has_document = true;
    return PAWL_OK;
}

static pawl_status end_stream(struct yaml_reader *reader, struct place place)
{
    reader->is_done = true;
    if (!reader->tree.root)
        return tree_fail(&reader->tree, place, "a value", "the end of the text");
    return PAWL_OK;
}

static pawl_status take_event(struct yaml_reader *reader, const yaml_event_t *event)
{
    struct place place = place_of(reader, event->start_mark);

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return begin_document(reader, place);
    case YAML_STREAM_END_EVENT:
        return end_stream(reader, place);
    case YAML_ALIAS_EVENT:
        return fail_word(reader, place, "no aliases", "*",
                         str_of((const char *)event->data.alias.anchor));
    case YAML_SCALAR_EVENT:
        return is_key_next(reader) ? take_key(reader, event, place)
                                   : add_scalar(reader, event, place);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(reader, NODE_ARRAY, event->data.sequence_start.tag, place);
    case YAML_MAPPING_START_EVENT:
        return open_node(reader, NODE_OBJECT, event->data.mapping_start.tag, place);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return tree_close(&reader->tree);
    case YAML_STREAM_START_EVENT:
        return check_directives(reader, 0);
    case YAML_DOCUMENT_END_EVENT:
        (void)place_of(reader, event->end_mark);
        return check_directives(reader, reader->at);
    case YAML_NO_EVENT:
        break;
    }
    return PAWL_OK;
}

/* ---- libyaml's own complaints ---------------------------------------------------- */

static pawl_status fail_parser(struct yaml_reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *problem = parser->problem ? parser->problem : "something else";
    struct yaml_complaint complaint;
    struct place place;
    size_t at;

    if (parser->error == YAML_MEMORY_ERROR)
        return scope_no_memory(reader->tree.scope);
    /* libyaml's reader, alone, gives an offset in bytes and no mark. */
    place = parser->error == YAML_READER_ERROR ? place_of_offset(reader, parser->problem_offset)
                                               : place_of(reader, parser->problem_mark);
    at = parser->error == YAML_READER_ERROR ? parser->problem_offset : reader->at;
    yaml_explain(problem, (uint32_t)parser->context_mark.line + 1, reader->text, at, &complaint);
    return tree_fail(&reader->tree, place, complaint.expected, complaint.found);
}

static pawl_status read_events(struct yaml_reader *reader)
{
    pawl_status status = PAWL_OK;

    while (status == PAWL_OK && !reader->is_done) {
        yaml_event_t event;

        if (!yaml_parser_parse(&reader->parser, &event))
            return fail_parser(reader);
        status = take_event(reader, &event);
        yaml_event_delete(&event);
    }
    return status;
}

pawl_status node_read_yaml(struct scope *scope, str text, struct node **out)
{
    struct yaml_reader reader = { .tree.scope = scope, .line = 1 };
    pawl_status status;

    if (str_starts(text, STR("\xEF\xBB\xBF"))) /* YAML allows a byte order mark, libyaml does not */
        text = str_from(text, 3);
    reader.text = text;
    TRY_MEMORY(scope, yaml_parser_initialize(&reader.parser));
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser,
                                 (const unsigned char *)(text.data ? text.data : ""), text.size);
    status = read_events(&reader);
    yaml_parser_delete(&reader.parser);
    if (status == PAWL_OK)
        *out = reader.tree.root;
    return status;
}
