/* fuzz_ops.c - operations by name, one a line, over a store in memory:
 *
 *   instance.create {"definition":"order"}     as pawl_call() takes them
 *   instance.list ?state=new&limit=2           as a path and a query bring them
 *
 * @1, @2, ... stand for the ids of the instances created so far. Whatever is asked, the store
 * verifies afterwards. */
#include "api/api.h"
#include "api/ops.h"
#include "fuzz.h"

#define LINES_MAX 40
#define IDS_MAX   9
#define PAIRS_MAX 16

static const char order[] =
    "name: order\nstates: [new, paid, gone]\ninitial_state: new\n"
    "terminal_states: [gone]\nterminal_kinds: {gone: cancel}\ntransitions:\n"
    "  - {from_state: new, action: pay, to_state: paid}\n"
    "  - {from_state: paid, action: back, to_state: new, requires_reason: true}\n"
    "  - {from_state: new, action: drop, to_state: gone}\n"
    "  - {from_state: paid, action: drop, to_state: gone, guard: sure}\n";
static const char nap[] = "name: nap\nsteps:\n"
                          "  start: {name: doze, tool: sleep, args: {for: 1m}, next: say}\n"
                          "  say: {tool: set, args: {x: \"{{input.x}}\"}, done: true}\n";

struct session {
    pawl *p;
    char ids[IDS_MAX][27];
    uint32_t count;
};

/* The line with @N replaced, in `out`. */
static void replace_ids(const struct session *session, str line, struct buf *out)
{
    for (size_t i = 0; i < line.size; i++) {
        uint32_t which = i + 1 < line.size ? (uint32_t)(line.data[i + 1] - '1') : IDS_MAX;

        if (line.data[i] == '@' && which < session->count) {
            buf_str(out, str_of(session->ids[which]));
            i++;
        } else
            buf_byte(out, (unsigned char)line.data[i]);
    }
}

static void note_id(struct session *session, const char *answer)
{
    const char *found = strstr(answer, "\"instance_id\":\"");

    if (found && session->count < IDS_MAX) {
        found += strlen("\"instance_id\":\"");
        REQUIRE(strlen(found) > 26);
        memcpy(session->ids[session->count], found, 26);
        session->ids[session->count++][26] = '\0';
    }
}

static enum op_place place_of(const struct op *op, str name)
{
    for (const struct op_param *param = op->params; param->name; param++)
        if (str_is(name, param->name))
            return param->place;
    return IN_QUERY;
}

static uint32_t split(const struct op *op, str query, struct op_pair *pairs)
{
    uint32_t count = 0;

    while (query.size > 0 && count < PAIRS_MAX) {
        const char *end = memchr(query.data, '&', query.size);
        str pair = { query.data, end ? (size_t)(end - query.data) : query.size };
        const char *equals = pair.size ? memchr(pair.data, '=', pair.size) : NULL;
        str name = { pair.data, equals ? (size_t)(equals - pair.data) : pair.size };
        str value = equals ? str_from(pair, name.size + 1) : STR("");

        pairs[count++] = (struct op_pair){ name, value, place_of(op, name) };
        query = str_from(query, pair.size + (end ? 1 : 0));
    }
    return count;
}

/* Surfaces hand over texts that are UTF-8 without NUL; so does this one. */
static void run_pairs(struct session *session, const char *name, str query)
{
    const struct op *op = op_find(str_of(name));
    struct op_pair pairs[PAIRS_MAX];
    struct op_request request = { .pairs = pairs };
    struct op_answer answer;
    struct op_call call;
    struct scope scope;
    struct buf out;
    bool waits;

    if (!op || !str_is_utf8(query, false))
        return;
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    buf_init(&out, &heap_libc, LIMIT_SCOPE);
    request.pair_count = split(op, query, pairs);
    if (op_prepare(session->p, op, &request, &scope, &call) != PAWL_OK ||
        op_start(&call, &out, &answer, &waits) != PAWL_OK)
        REQUIRE(scope.error.message[0]);
    buf_fini(&out);
    scope_fini(&scope);
}

static void run_line(struct session *session, str line)
{
    pawl_error error = { 0 };
    struct buf text;
    char *words, *input, *answer = NULL;

    buf_init(&text, &heap_libc, LIMIT_TEXT);
    replace_ids(session, line, &text);
    words = malloc(text.size + 1);
    REQUIRE(words);
    memcpy(words, buf_text(&text), text.size);
    words[text.size] = '\0';
    input = strchr(words, ' ');
    if (input) {
        *input++ = '\0';
        if (*input == '?')
            run_pairs(session, words, str_of(input + 1));
        else if (pawl_call(session->p, words, input, &answer, &error) == PAWL_OK) {
            note_id(session, answer);
            pawl_free(session->p, answer);
        } else
            REQUIRE(error.message[0] && !answer);
    }
    free(words);
    buf_fini(&text);
}

static void require_valid(pawl *p)
{
    pawl_error error;
    char *answer;

    REQUIRE(pawl_call(p, "store.verify", "{}", &answer, &error) == PAWL_OK);
    if (!strstr(answer, "\"valid\":true"))
        fprintf(stderr, "%s\n", answer);
    REQUIRE(strstr(answer, "\"valid\":true"));
    pawl_free(p, answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const pawl_options options = { .test_clock = true };
    struct session session = { 0 };
    str rest = { (const char *)data, size };
    pawl_error error;

    REQUIRE(pawl_open_env(&session.p, "memory:", &options, env_sim_new(FUZZ_NOW_MS, 7), &error) ==
            PAWL_OK);
    REQUIRE(pawl_define(session.p, order, sizeof order - 1, NULL, &error) == PAWL_OK);
    REQUIRE(pawl_define(session.p, nap, sizeof nap - 1, NULL, &error) == PAWL_OK);
    for (int i = 0; i < LINES_MAX && rest.size > 0; i++) {
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t length = end ? (size_t)(end - rest.data) : rest.size;

        run_line(&session, (str){ rest.data, length });
        rest = str_from(rest, length + (end ? 1 : 0));
    }
    require_valid(session.p);
    pawl_close(session.p);
    return 0;
}
