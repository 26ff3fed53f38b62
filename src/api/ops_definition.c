/* ops_definition.c - definitions: put, get, list, check. */
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/assert.h"
#include "base/json_scan.h"
#include "base/limits.h"
#include "machine/machine.h"
#include <stdio.h>

static void print_findings(const char *key, const struct findings *findings, bool warnings,
                           struct buf *out)
{
    json_put_open(out, key, '[');
    for (uint32_t i = 0; findings && i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];

        if (finding->is_warning != warnings)
            continue;
        json_open(out, '{');
        json_put_text(out, "message", finding->message);
        json_put_u64(out, "line", finding->line);
        json_put_u64(out, "column", finding->column);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void print_identity(str name, uint32_t version, int kind, const uint8_t *sha256,
                           struct buf *out)
{
    json_put_str(out, "name", name);
    json_put_u64(out, "version", version);
    json_put_text(out, "kind", definition_kind_name((enum definition_kind)kind));
    json_put_hex(out, "sha256", sha256, SHA_SIZE);
}

/* ---- put and check ---- */

/* A text that was said to be JSON must be: YAML would accept more. INVALID_DEFINITION. */
static pawl_status check_format(const struct op_call *call)
{
    str format = op_ref(call, "format");
    struct node *document;
    pawl_status status;

    if (!format.data || str_is(format, "yaml"))
        return PAWL_OK;
    if (!str_is(format, "json"))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'format': expected json or yaml, found '%.*s'", STR_ARG(format));
    status = node_read_json(call->scope, op_text(call, "text"), &document);
    if (status == PAWL_INVALID_REQUEST)
        status = call->scope->error.status = PAWL_INVALID_DEFINITION;
    return status;
}

pawl_status op_definition_put(struct op_call *call, struct buf *out)
{
    struct defined defined = { 0 };
    str name = op_text(call, "name"), text = op_text(call, "text"), rights;

    if (!definition_name_is_valid(name))
        return scope_fail(call->scope, PAWL_INVALID_DEFINITION,
                          "the name '%.*s': expected 1..%d characters of A-Za-z0-9._/-",
                          STR_ARG(name), LIMIT_NAME);
    TRY(check_format(call));
    TRY(op_rights(call, true, &rights));
    TRY(engine_define(op_engine(call), call->scope, name, text.data ? text : STR(""), rights,
                      call->key, &defined));
    call->http_status = defined.is_new ? 201 : 200;
    print_identity(defined.name, defined.version, (int)defined.kind, defined.sha256, out);
    print_findings("warnings", defined.warnings, true, out);
    return PAWL_OK;
}

/* The reader's words begin with the place; a finding has it apart. */
static void split_place(struct finding *finding)
{
    unsigned line, column;
    int skip = 0;

    if (sscanf(finding->message, "line %u, column %u: %n", &line, &column, &skip) != 2 || !skip)
        return;
    finding->line = line;
    finding->column = column;
    memmove(finding->message, finding->message + skip, strlen(finding->message + skip) + 1);
}

static pawl_status keep_as_finding(const struct op_call *call, struct findings *findings)
{
    struct finding *finding = ARENA_NEW(&call->scope->arena, struct finding);

    TRY_MEMORY(call->scope, finding);
    snprintf(finding->message, sizeof finding->message, "%.*s", (int)sizeof finding->message - 1,
             call->scope->error.message);
    *findings = (struct findings){ finding, 1, 1 };
    return PAWL_OK;
}

pawl_status op_definition_check(struct op_call *call, struct buf *out)
{
    struct findings findings = { 0 };
    str text = op_text(call, "text");
    bool has_error = false;
    pawl_status status = check_format(call);

    if (status == PAWL_INVALID_DEFINITION)
        status = keep_as_finding(call, &findings);
    else if (status == PAWL_OK)
        status = engine_check(op_engine(call), call->scope, STR_NONE, text.data ? text : STR(""),
                              &findings);
    if (status != PAWL_OK)
        return status;
    for (uint32_t i = 0; i < findings.count; i++) {
        split_place(&findings.items[i]);
        has_error |= !findings.items[i].is_warning;
    }
    print_findings("errors", &findings, false, out);
    print_findings("warnings", &findings, true, out);
    return print_against(call, has_error, out);
}

/* ---- get ---- */

bool definition_reference(str reference, str *name, uint32_t *version)
{
    return reference_split(reference, name, version) && definition_name_is_valid(*name);
}

pawl_status definition_resolve(const struct op_call *call, str reference,
                               struct definition_row *out)
{
    str name;
    uint32_t version;

    if (!definition_reference(reference, &name, &version))
        return scope_fail(call->scope, PAWL_NOT_KNOWN, "no definition '%.*s'", STR_ARG(reference));
    return store_find_definition(engine_store(shard_home(call->p)->engine), call->scope, name,
                                 version, NULL, out);
}

pawl_status definition_asked(const struct op_call *call, struct definition_row *out)
{
    str name = op_text(call, "name"), wanted = op_text(call, "version");
    uint64_t version = 0;

    if (wanted.data && !str_to_u64(wanted, &version))
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'version': expected a whole number, found '%.*s'", STR_ARG(wanted));
    if (!definition_name_is_valid(name))
        return scope_fail(call->scope, PAWL_NOT_KNOWN, "no definition '%.*s'", STR_ARG(name));
    if (wanted.data && (version == 0 || version > UINT32_MAX))
        return scope_fail(call->scope, PAWL_NOT_KNOWN, "'%.*s' has no version %.*s", STR_ARG(name),
                          STR_ARG(wanted));
    return store_find_definition(engine_store(shard_home(call->p)->engine), call->scope, name,
                                 (uint32_t)version, NULL, out);
}

/* The names that instance.query takes; nothing if it declares none. */
static pawl_status print_queries(struct scope *scope, const struct definition *definition,
                                 struct buf *out)
{
    struct json_scan scan;
    str queries, name, expression;

    if (!json_member(&scope->arena, definition->plan_text, STR("queries"), &queries))
        return PAWL_OK;
    json_put_open(out, "queries", '[');
    json_scan_begin(&scan, queries);
    while (json_scan_next(&scan, &name, &expression)) {
        name = json_unescape(&scope->arena, name);
        TRY_MEMORY(scope, name.data);
        json_str(out, name);
    }
    json_close(out, ']');
    return PAWL_OK;
}

pawl_status op_definition_get(struct op_call *call, struct buf *out)
{
    struct definition *definition = NULL;
    struct definition_row row;
    bool is_expanded;

    TRY(definition_asked(call, &row));
    TRY(query_flag(call, "expanded", &is_expanded));
    if (is_expanded)
        TRY(definition_load(call->scope, row.compiled, &definition));
    print_identity(row.name, row.version, row.kind, row.source_sha, out);
    json_put_str(out, "text", row.source);
    if (definition) {
        print_transitions(definition, out);
        json_opt_raw(out, "input", definition->input_text);
        TRY(print_queries(call->scope, definition, out));
    }
    return PAWL_OK;
}

/* ---- list ---- */

static pawl_status read_cursor(const struct op_call *call, str *out)
{
    str cursor = op_text(call, "after");
    char *name = arena_alloc(&call->scope->arena, LIMIT_NAME + 1);
    size_t size = cursor.size / 2;
    bool is_good;

    TRY_MEMORY(call->scope, name);
    is_good = size <= LIMIT_NAME && sha_unhex(cursor, (uint8_t *)name, size);
    *out = (str){ name, is_good ? size : 0 };
    if (cursor.data && !definition_name_is_valid(*out))
        return scope_fail(call->scope, PAWL_INVALID_QUERY,
                          "the filter 'after': not a cursor that `next` gave");
    return PAWL_OK;
}

/* A cursor is the last name in hexadecimal: opaque, and safe in a URL. One row more than the page
 * was asked for: only if it is there is there a next one. */
pawl_status op_definition_list(struct op_call *call, struct buf *out)
{
    struct definition_row *rows = NULL;
    uint32_t limit = 0, count = 0;
    str after = STR_NONE;

    TRY(query_check(call, false));
    TRY(query_limit(call, &limit));
    TRY(read_cursor(call, &after));
    TRY(store_definitions(engine_store(op_engine(call)), call->scope, after, limit + 1, &rows,
                          &count));
    json_put_open(out, "definitions", '[');
    for (uint32_t i = 0; i < count && i < limit; i++) {
        json_open(out, '{');
        print_identity(rows[i].name, rows[i].version, rows[i].kind, rows[i].source_sha, out);
        json_close(out, '}');
    }
    json_close(out, ']');
    if (count > limit)
        json_put_hex(out, "next", rows[limit - 1].name.data, rows[limit - 1].name.size);
    else
        json_put_text(out, "next", NULL);
    return PAWL_OK;
}
