/* fixtures_ask.c - fixtures that ask the client: legacy by requests of ours, modern by results that
 * say input_required, which the client answers in another call. */
#include "api/world.h"
#include "base/sha.h"
#include "surface/mcp/fixtures.h"

#define FORM(message, properties, required)                                                        \
    "\"message\":\"" message                                                                       \
    "\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{" properties                      \
    "},\"required\":[" required "]}"
#define STRING(name) "\"" name "\":{\"type\":\"string\"}"
#define ELICIT(params)                                                                             \
    "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\"," params "}}"
#define SAMPLE(words)                                                                              \
    "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" words "\"}}],"   \
    "\"maxTokens\":100"
#define ASK_NAME  ELICIT(FORM("What is your name?", STRING("name"), "\"name\""))
#define ASK_COLOR ELICIT(FORM("What is your favorite color?", STRING("color"), "\"color\""))
#define ASK_OK    ELICIT(FORM("Please confirm", "\"ok\":{\"type\":\"boolean\"}", "\"ok\""))
#define ASK_MODEL                                                                                  \
    "{\"method\":\"sampling/createMessage\",\"params\":{" SAMPLE("What is the capital of "         \
                                                                 "France?") "}}"
#define ASK_ROOTS "{\"method\":\"roots/list\"}"

/* ---- Legacy ---- */

static const struct {
    const char *name, *method, *params;
} questions[] = {
    { "test_sampling", "sampling/createMessage", NULL },
    { "test_elicitation", "elicitation/create", NULL },
    { "test_elicitation_sep1034_defaults", "elicitation/create",
      FORM("Please review and update the form fields with defaults",
           "\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
           "\"age\":{\"type\":\"integer\",\"default\":30},"
           "\"score\":{\"type\":\"number\",\"default\":95.5},"
           "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
           "\"default\":\"active\"},"
           "\"verified\":{\"type\":\"boolean\",\"default\":true}",
           "") },
    { "test_elicitation_sep1330_enums", "elicitation/create",
      FORM(
          "Please select options from the enum fields",
          "\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
          "\"titledSingle\":{\"type\":\"string\",\"oneOf\":["
          "{\"const\":\"value1\",\"title\":\"First Option\"},"
          "{\"const\":\"value2\",\"title\":\"Second Option\"},"
          "{\"const\":\"value3\",\"title\":\"Third Option\"}]},"
          "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
          "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
          "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
          "\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
          "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":["
          "{\"const\":\"value1\",\"title\":\"First Choice\"},"
          "{\"const\":\"value2\",\"title\":\"Second Choice\"},"
          "{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}",
          "") },
};

/* Those with a text of the caller's. */
static void print_question(struct rpc_exchange *exchange, const char *method, struct buf *out)
{
    const struct node *arguments = node_find(exchange->params, "arguments");

    if (strcmp(method, "elicitation/create") == 0) {
        json_put_raw(out, "message", node_raw(arguments, "message"));
        buf_str(out, STR(",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
                         "\"username\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
                         "\"required\":[\"username\",\"email\"]}"));
        return;
    }
    buf_str(out, STR("\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"));
    json_raw(out, node_raw(arguments, "prompt"));
    buf_str(out, STR("}}],\"maxTokens\":100"));
}

static void put_reply(struct rpc_exchange *exchange, bool is_model, struct buf *result)
{
    const struct node *answer = reply_result(exchange);
    struct buf words;

    buf_init(&words, &heap_libc, LIMIT_SCOPE);
    if (is_model)
        buf_fmt(&words, "LLM response: %.*s",
                STR_ARG(node_text(node_find(answer, "content"), "text")));
    else
        buf_fmt(&words, "User response: %.*s, content: %.*s", STR_ARG(node_text(answer, "action")),
                STR_ARG(node_raw(answer, "content")));
    tool_result_text(result, buf_view(&words), !answer);
    buf_fini(&words);
}

static pawl_status ask_legacy(struct rpc_exchange *exchange, size_t which, struct buf *result)
{
    struct buf params;

    if (exchange->reply.data) {
        put_reply(exchange, which == 0, result);
        return PAWL_OK;
    }
    if (!exchange->asked) {
        buf_init(&params, &heap_libc, LIMIT_SCOPE);
        if (questions[which].params)
            buf_str(&params, str_of(questions[which].params));
        else
            print_question(exchange, questions[which].method, &params);
        exchange_ask(exchange, questions[which].method, buf_view(&params));
        buf_fini(&params);
    }
    exchange_wait(exchange, 0);
    return PAWL_OK;
}

/* ---- Modern ---- */

static const struct node *response(const struct rpc_exchange *exchange, const char *key)
{
    return node_find(node_find(exchange->params, "inputResponses"), key);
}

/* A text of an accepted form. */
static str form_text(const struct rpc_exchange *exchange, const char *key, const char *name)
{
    const struct node *answer = response(exchange, key);

    return str_is(node_text(answer, "action"), "accept")
               ? node_text(node_find(answer, "content"), name)
               : STR_NONE;
}

#define STATE_SIZE (2 * SHA_SIZE + 3)

/* A stage that the client carries, and our signature of it: of this server, caller and tool. */
static bool sign(struct rpc_exchange *exchange, char stage, char out[STATE_SIZE])
{
    struct sha *sha = sha_new(&heap_libc);
    uint8_t hash[SHA_SIZE];
    str name = node_text(exchange->params, "name");

    if (!sha)
        return false;
    sha_begin(sha);
    sha_add(sha, exchange->server->secret, sizeof exchange->server->secret);
    sha_add(sha, &stage, 1);
    if (exchange->who.name.data)
        sha_add(sha, exchange->who.name.data, exchange->who.name.size);
    sha_add(sha, "\n", 1);
    sha_add(sha, name.data, name.size);
    sha_end(sha, hash);
    sha_free(sha);
    out[0] = stage;
    out[1] = '.';
    sha_hex(hash, SHA_SIZE, out + 2);
    return true;
}

/* The stage in the client's state; 0: it has none. False: it is not ours. */
static bool read_stage(struct rpc_exchange *exchange, char *out)
{
    str state = node_text(exchange->params, "requestState");
    char signed_one[STATE_SIZE];

    *out = 0;
    if (!state.data)
        return true;
    if (state.size != STATE_SIZE - 1 || !sign(exchange, state.data[0], signed_one) ||
        !world_same_secret(signed_one, state.data, state.size))
        return false;
    *out = state.data[0];
    return true;
}

static pawl_status require(struct rpc_exchange *exchange, struct buf *result, const char *requests,
                           char stage)
{
    char state[STATE_SIZE];

    exchange->result_type = "input_required";
    buf_fmt(result, "\"inputRequests\":{%s}", requests);
    if (stage) {
        TRY_MEMORY(&exchange->turn->work, sign(exchange, stage, state));
        json_put_text(result, "requestState", state);
    }
    return PAWL_OK;
}

static pawl_status say(struct buf *result, const char *format, str text)
{
    struct buf words;

    buf_init(&words, &heap_libc, LIMIT_SCOPE);
    buf_str(&words, str_of(format));
    buf_str(&words, text);
    buf_byte(&words, '!');
    tool_result_text(result, buf_view(&words), false);
    buf_fini(&words);
    return PAWL_OK;
}

static pawl_status ask_name(struct rpc_exchange *exchange, struct buf *result)
{
    str name = form_text(exchange, "user_name", "name");

    return name.data ? say(result, "Hello, ", name)
                     : require(exchange, result, "\"user_name\":" ASK_NAME, 0);
}

static pawl_status ask_model(struct rpc_exchange *exchange, struct buf *result)
{
    const struct node *answer = response(exchange, "capital_question");

    return answer ? say(result, "The model said: ", node_text(node_find(answer, "content"), "text"))
                  : require(exchange, result, "\"capital_question\":" ASK_MODEL, 0);
}

static pawl_status ask_roots(struct rpc_exchange *exchange, struct buf *result)
{
    const struct node *answer = response(exchange, "client_roots");

    return answer ? say(result, "The roots: ", node_raw(answer, "roots"))
                  : require(exchange, result, "\"client_roots\":" ASK_ROOTS, 0);
}

static pawl_status ask_state(struct rpc_exchange *exchange, struct buf *result)
{
    char stage;

    if (!read_stage(exchange, &stage))
        return rpc_fail(exchange, RPC_PARAMS, "params.requestState: not a state of ours");
    return stage && response(exchange, "confirm")
               ? say(result, "state-ok", STR(""))
               : require(exchange, result, "\"confirm\":" ASK_OK, '1');
}

static pawl_status ask_three(struct rpc_exchange *exchange, struct buf *result)
{
    char stage;

    if (!read_stage(exchange, &stage))
        return rpc_fail(exchange, RPC_PARAMS, "params.requestState: not a state of ours");
    if (stage && response(exchange, "user_name") && response(exchange, "greeting") &&
        response(exchange, "client_roots"))
        return say(result, "all answered by ", form_text(exchange, "user_name", "name"));
    return require(
        exchange, result,
        "\"user_name\":" ASK_NAME ",\"greeting\":" ASK_MODEL ",\"client_roots\":" ASK_ROOTS, '1');
}

static pawl_status ask_rounds(struct rpc_exchange *exchange, struct buf *result)
{
    char stage;

    if (!read_stage(exchange, &stage))
        return rpc_fail(exchange, RPC_PARAMS, "params.requestState: not a state of ours");
    if (stage == '2' && form_text(exchange, "step2", "color").data)
        return say(result, "your color is ", form_text(exchange, "step2", "color"));
    if (stage == '2' || (stage == '1' && form_text(exchange, "step1", "name").data))
        return require(exchange, result, "\"step2\":" ASK_COLOR, '2');
    return require(exchange, result, "\"step1\":" ASK_NAME, '1');
}

static pawl_status ask_what_is_declared(struct rpc_exchange *exchange, struct buf *result)
{
    if (node_find(exchange->params, "inputResponses"))
        return say(result, "answered", STR(""));
    if (exchange->caps.sampling)
        return require(exchange, result, "\"model\":" ASK_MODEL, 0);
    if (exchange->caps.form)
        return require(exchange, result, "\"user_name\":" ASK_NAME, 0);
    return say(result, "nothing can be asked", STR(""));
}

static const struct {
    const char *name;
    method_fn run;
} askers[] = {
    { "test_streaming_elicitation", ask_name },
    { "test_input_required_result_elicitation", ask_name },
    { "test_input_required_result_sampling", ask_model },
    { "test_input_required_result_list_roots", ask_roots },
    { "test_input_required_result_request_state", ask_state },
    { "test_input_required_result_multiple_inputs", ask_three },
    { "test_input_required_result_multi_round", ask_rounds },
    { "test_input_required_result_tampered_state", ask_state },
    { "test_input_required_result_capabilities", ask_what_is_declared },
};

pawl_status fixture_ask(struct rpc_exchange *exchange, str name, struct buf *result)
{
    bool modern = is_modern(exchange->version);

    for (size_t i = 0; !modern && i < sizeof questions / sizeof questions[0]; i++)
        if (str_is(name, questions[i].name))
            return ask_legacy(exchange, i, result);
    for (size_t i = 0; modern && i < sizeof askers / sizeof askers[0]; i++)
        if (str_is(name, askers[i].name))
            return askers[i].run(exchange, result);
    tool_result_text(result, STR("this fixture belongs to the other era"), true);
    return PAWL_OK;
}

pawl_status fixture_prompt_ask(struct rpc_exchange *exchange, struct buf *result)
{
    str context = form_text(exchange, "user_context", "context");

    if (!context.data && is_modern(exchange->version))
        return require(exchange, result,
                       "\"user_context\":" ELICIT(FORM("What context should the prompt have?",
                                                       STRING("context"), "\"context\"")),
                       0);
    buf_str(result, STR("\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
                        "\"text\":"));
    json_str(result, context.data ? context : STR("no context"));
    buf_str(result, STR("}}]"));
    return PAWL_OK;
}
