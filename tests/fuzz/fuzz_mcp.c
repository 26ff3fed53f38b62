/* fuzz_mcp.c - messages of MCP, one a line, over a store in memory, as stdio brings them. Lines that
 * begin with '#' come with the version header of 2026-07-28, as HTTP brings them. Whatever is sent,
 * each request has one answer that is a JSON-RPC message, or waits; and the store verifies. */
#include "api/api.h"
#include "fuzz.h"
#include "surface/mcp/mcp_int.h"

#define LINES_MAX 40

static const char order[] =
    "name: order\nstates: [new, paid, gone]\ninitial_state: new\n"
    "terminal_states: [gone]\nterminal_kinds: {gone: cancel}\ntransitions:\n"
    "  - {from_state: new, action: pay, to_state: paid}\n"
    "  - {from_state: \"*\", action: drop, to_state: gone}\n";
static const char gate[] = "name: gate\ninput: {type: object, required: [x], properties: "
                           "{x: {type: string}}}\nsteps:\n  sign: {approval: {}, done: true}\n";

struct fuzzed {
    struct mcp_server *server;
    struct session *session;
};

static str no_header(const void *context, const char *name)
{
    (void)context;
    return strcmp(name, "MCP-Protocol-Version") == 0 ? STR("2026-07-28") : STR_NONE;
}

static void require_message(const struct buf *text)
{
    struct scope scope;
    struct node *node = NULL;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    REQUIRE(node_read_json(&scope, buf_view(text), &node) == PAWL_OK);
    REQUIRE(str_is(node_text(node, "jsonrpc"), "2.0"));
    REQUIRE(!node_find(node, "result") != !node_find(node, "error"));
    scope_fini(&scope);
}

static void run(struct fuzzed *fuzzed, struct rpc_exchange *exchange)
{
    struct buf text;

    exchange_run(exchange);
    if (exchange->is_done)
        require_message(&exchange->answer);
    buf_init(&text, &heap_libc, LIMIT_SCOPE);
    exchange_take(exchange, &text);
    buf_fini(&text);
    if (exchange->session && !fuzzed->session) {
        exchange->session->references++;
        fuzzed->session = exchange->session;
    }
}

static void run_line(struct fuzzed *fuzzed, str line)
{
    bool has_headers = line.size > 0 && line.data[0] == '#';
    struct rpc_exchange *exchange =
        exchange_new(fuzzed->server, has_headers ? OVER_HTTP : OVER_STDIO);
    struct buf text;

    REQUIRE(exchange);
    if (has_headers)
        exchange->headers = (struct op_headers){ no_header, NULL };
    if (fuzzed->session && !has_headers) {
        fuzzed->session->references++;
        exchange->session = fuzzed->session;
    }
    buf_init(&text, &heap_libc, LIMIT_SCOPE);
    if (!message_read(exchange, has_headers ? str_from(line, 1) : line) ||
        (exchange->message->kind != NODE_ARRAY && !era_enter(exchange))) {
        error_print(exchange, &text);
        require_message(&text);
    } else if (exchange->message->kind == NODE_ARRAY || !exchange->id.data) {
        exchange_cancelled(exchange);
    } else if (!exchange->method_name.data) {
        exchange_answered(exchange);
    } else {
        run(fuzzed, exchange);
    }
    buf_fini(&text);
    exchange_free(exchange);
}

static void require_valid(pawl *p)
{
    pawl_error error;
    char *answer;

    REQUIRE(pawl_call(p, "store.verify", "{}", &answer, &error) == PAWL_OK);
    REQUIRE(strstr(answer, "\"valid\":true"));
    pawl_free(p, answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const pawl_options options = { .test_clock = true };
    struct fuzzed fuzzed = { 0 };
    str rest = { (const char *)data, size };
    pawl_error error;
    pawl *p;

    REQUIRE(pawl_open_env(&p, "memory:", &options, env_sim_new(FUZZ_NOW_MS, 7), &error) == PAWL_OK);
    REQUIRE(pawl_define(p, order, sizeof order - 1, NULL, &error) == PAWL_OK);
    REQUIRE(pawl_define(p, gate, sizeof gate - 1, NULL, &error) == PAWL_OK);
    fuzzed.server = mcp_start(p, &(struct mcp_options){ .has_fixtures = true });
    REQUIRE(fuzzed.server);
    for (int i = 0; i < LINES_MAX && rest.size > 0; i++) {
        str line = str_before(rest, '\n');

        rest = str_from(rest, line.size + (line.size < rest.size));
        run_line(&fuzzed, line);
    }
    mcp_end_streams(fuzzed.server);
    session_leave(fuzzed.server, fuzzed.session);
    mcp_free(fuzzed.server);
    require_valid(p);
    pawl_close(p);
    return 0;
}
