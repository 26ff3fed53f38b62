/* fixtures.c - what the conformance suite asks for, as far as it needs no definition and no answer
 * of the client. */
#include "surface/mcp/fixtures.h"

#define PNG                                                                                        \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8"                                 \
    "z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
#define WAV           "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
#define NO_ARGUMENTS  "{\"type\":\"object\",\"additionalProperties\":false}"
#define ANY_ARGUMENTS "{\"type\":\"object\"}"
#define TEXT(words)   "\"content\":[{\"type\":\"text\",\"text\":\"" words "\"}],\"isError\":false"
#define IMAGE         "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"

/* ---- Tools ---- */

static pawl_status need_sampling(struct rpc_exchange *exchange, struct buf *result)
{
    if (is_modern(exchange->version) && !exchange->caps.sampling)
        return rpc_need(exchange, "{\"sampling\":{}}");
    tool_result_text(result, STR("sampling is there"), false);
    return PAWL_OK;
}

static pawl_status change_tools(struct rpc_exchange *exchange, struct buf *result)
{
    atomic_fetch_add(&exchange->server->tools_changed, 1);
    lists_wake(exchange->server);
    tool_result_text(result, STR("tools have changed"), false);
    return PAWL_OK;
}

static pawl_status change_prompts(struct rpc_exchange *exchange, struct buf *result)
{
    atomic_fetch_add(&exchange->server->prompts_changed, 1);
    lists_wake(exchange->server);
    tool_result_text(result, STR("prompts have changed"), false);
    return PAWL_OK;
}

/* Modern: only for a request that names a level. */
static void log_words(struct rpc_exchange *exchange, const char *words)
{
    struct buf params;

    if (is_modern(exchange->version) && !node_find(exchange->meta, META_PREFIX "logLevel"))
        return;
    buf_init(&params, &heap_libc, LIMIT_TEXT);
    json_put_text(&params, "level", "info");
    json_put_text(&params, "logger", "fixtures");
    json_put_text(&params, "data", words);
    exchange_notify(exchange, "notifications/message", buf_view(&params));
    buf_fini(&params);
}

#define PAUSE_MS 50

static pawl_status log_thrice(struct rpc_exchange *exchange, struct buf *result)
{
    static const char *const words[] = { "Tool execution started", "Tool processing data",
                                         "Tool execution completed" };

    log_words(exchange, words[exchange->stage]);
    if (++exchange->stage < 3) {
        exchange_wait(exchange, PAUSE_MS);
        return PAWL_OK;
    }
    tool_result_text(result, STR("Tool with logging executed successfully"), false);
    return PAWL_OK;
}

static pawl_status log_once(struct rpc_exchange *exchange, struct buf *result)
{
    log_words(exchange, "a line");
    tool_result_text(result, STR("logged"), false);
    return PAWL_OK;
}

static void put_progress(struct rpc_exchange *exchange, uint64_t done)
{
    struct buf params;

    if (!exchange->progress_token.data)
        return;
    buf_init(&params, &heap_libc, LIMIT_TEXT);
    json_put_raw(&params, "progressToken", exchange->progress_token);
    json_put_u64(&params, "progress", done);
    json_put_u64(&params, "total", 100);
    exchange_notify(exchange, "notifications/progress", buf_view(&params));
    buf_fini(&params);
}

static pawl_status progress_thrice(struct rpc_exchange *exchange, struct buf *result)
{
    put_progress(exchange, (uint64_t)exchange->stage * 50);
    if (++exchange->stage < 3) {
        exchange_wait(exchange, PAUSE_MS);
        return PAWL_OK;
    }
    tool_result_text(result, STR("done"), false);
    return PAWL_OK;
}

static pawl_status echo_region(struct rpc_exchange *exchange, struct buf *result)
{
    const struct node *arguments = node_find(exchange->params, "arguments");

    tool_result_text(
        result, node_text(arguments, "region").data ? node_text(arguments, "region") : STR("none"),
        false);
    return PAWL_OK;
}

static pawl_status ask(struct rpc_exchange *exchange, struct buf *result)
{
    return fixture_ask(exchange, node_text(exchange->params, "name"), result);
}

#define PROPERTY(name) "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"string\"}}}"
#define SCHEMA_2020                                                                                \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","           \
    "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"      \
    "\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{"          \
    "\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"                   \
    "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"                      \
    "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"                            \
    "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"             \
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"                            \
    "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"                       \
    "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}"

/* A tool has an answer that is always the same, or a function. */
static const struct fixture {
    const char *name, *schema, *answer;
    method_fn run;
} tools[] = {
    { "test_simple_text", NO_ARGUMENTS, TEXT("This is a simple text response for testing.") },
    { "test_image_content", NO_ARGUMENTS, "\"content\":[" IMAGE "]" },
    { "test_audio_content", NO_ARGUMENTS,
      "\"content\":[{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}]" },
    { "test_embedded_resource", NO_ARGUMENTS,
      "\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
      "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}]" },
    { "test_multiple_content_types", NO_ARGUMENTS,
      "\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE
      ",{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\","
      "\"mimeType\":\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\""
      "}}]" },
    { "test_error_handling", NO_ARGUMENTS,
      "\"content\":[{\"type\":\"text\",\"text\":\"This tool intentionally returns an error for "
      "testing\"}],\"isError\":true" },
    { "json_schema_2020_12_tool", SCHEMA_2020, TEXT("ok") },
    { "test_missing_capability", NO_ARGUMENTS, NULL, need_sampling },
    { "test_logging_tool", NO_ARGUMENTS, NULL, log_once },
    { "test_tool_with_logging", NO_ARGUMENTS, NULL, log_thrice },
    { "test_tool_with_progress", NO_ARGUMENTS, NULL, progress_thrice },
    { "test_trigger_tool_change", NO_ARGUMENTS, NULL, change_tools },
    { "test_trigger_prompt_change", NO_ARGUMENTS, NULL, change_prompts },
    { "test_x_mcp_header",
      "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
      "\"x-mcp-header\":\"Region\"}}}",
      NULL, echo_region },
    { "test_sampling", PROPERTY("prompt"), NULL, ask },
    { "test_elicitation", PROPERTY("message"), NULL, ask },
    { "test_elicitation_sep1034_defaults", NO_ARGUMENTS, NULL, ask },
    { "test_elicitation_sep1330_enums", NO_ARGUMENTS, NULL, ask },
    { "test_streaming_elicitation", NO_ARGUMENTS, NULL, ask },
    { "test_input_required_result_elicitation", ANY_ARGUMENTS, NULL, ask },
    { "test_input_required_result_sampling", ANY_ARGUMENTS, NULL, ask },
    { "test_input_required_result_list_roots", ANY_ARGUMENTS, NULL, ask },
    { "test_input_required_result_request_state", ANY_ARGUMENTS, NULL, ask },
    { "test_input_required_result_multiple_inputs", ANY_ARGUMENTS, NULL, ask },
    { "test_input_required_result_multi_round", ANY_ARGUMENTS, NULL, ask },
    { "test_input_required_result_tampered_state", ANY_ARGUMENTS, NULL, ask },
    { "test_input_required_result_capabilities", ANY_ARGUMENTS, NULL, ask },
    { 0 },
};

static const struct fixture *find_tool(const struct rpc_exchange *exchange, str name)
{
    if (!exchange->server->options.has_fixtures)
        return NULL;
    for (const struct fixture *tool = tools; tool->name; tool++)
        if (str_is(name, tool->name))
            return tool;
    return NULL;
}

bool fixture_tool_has(const struct rpc_exchange *exchange, str name)
{
    return find_tool(exchange, name) != NULL;
}

pawl_status fixture_tool_call(struct rpc_exchange *exchange, str name, struct buf *result)
{
    const struct fixture *tool = find_tool(exchange, name);
    struct node *schema;

    TRY(node_read_json(&exchange->turn->work, str_of(tool->schema), &schema));
    if (!headers_match_schema(exchange, schema, node_find(exchange->params, "arguments")))
        return PAWL_INVALID_REQUEST;
    if (tool->run)
        return tool->run(exchange, result);
    buf_str(result, str_of(tool->answer));
    return PAWL_OK;
}

void fixtures_put_tools(struct rpc_exchange *exchange, struct buf *out)
{
    if (!exchange->server->options.has_fixtures)
        return;
    for (const struct fixture *tool = tools; tool->name; tool++) {
        json_open(out, '{');
        json_put_text(out, "name", tool->name);
        json_put_text(out, "description", "of the conformance suite");
        json_put_raw(out, "inputSchema", str_of(tool->schema));
        json_close(out, '}');
    }
}

/* ---- Resources ---- */

static const struct {
    const char *uri, *media, *member, *content;
} resources[] = {
    { "test://static-text", "text/plain", "text",
      "This is the content of the static text resource." },
    { "test://static-binary", "image/png", "blob", PNG },
    { "test://watched-resource", "text/plain", "text", "Watched resource content" },
};
#define RESOURCES (sizeof resources / sizeof resources[0])

void fixtures_put_resources(struct rpc_exchange *exchange, struct buf *out)
{
    for (size_t i = 0; exchange->server->options.has_fixtures && i < RESOURCES; i++) {
        json_open(out, '{');
        json_put_text(out, "uri", resources[i].uri);
        json_put_text(out, "name", resources[i].uri);
        json_put_text(out, "description", "of the conformance suite");
        json_put_text(out, "mimeType", resources[i].media);
        json_close(out, '}');
    }
}

void fixtures_put_templates(struct rpc_exchange *exchange, struct buf *out)
{
    if (exchange->server->options.has_fixtures)
        json_raw(out, STR("{\"uriTemplate\":\"test://template/{id}/data\",\"name\":\"template\","
                          "\"description\":\"of the conformance suite\","
                          "\"mimeType\":\"application/json\"}"));
}

static bool read_template(str uri, struct buf *result)
{
    const str prefix = STR("test://template/");
    struct buf text;
    str id;

    if (!str_starts(uri, prefix) || !str_is(str_after(str_from(uri, prefix.size), '/'), "data"))
        return false;
    id = str_before(str_from(uri, prefix.size), '/');
    buf_init(&text, &heap_libc, LIMIT_SCOPE);
    buf_fmt(&text, "{\"id\":\"%.*s\",\"templateTest\":true,\"data\":\"Data for ID: %.*s\"}",
            STR_ARG(id), STR_ARG(id));
    contents_put(result, uri, "application/json", "text", buf_view(&text));
    buf_fini(&text);
    return true;
}

bool fixture_resource_has(const struct rpc_exchange *exchange, str uri)
{
    return exchange->server->options.has_fixtures && str_starts(uri, STR("test://"));
}

pawl_status fixture_resource_read(struct rpc_exchange *exchange, str uri, struct buf *result,
                                  bool *is_there)
{
    if (!exchange->server->options.has_fixtures)
        return PAWL_OK;
    for (size_t i = 0; i < RESOURCES && !*is_there; i++)
        if (str_is(uri, resources[i].uri)) {
            contents_put(result, uri, resources[i].media, resources[i].member,
                         str_of(resources[i].content));
            *is_there = true;
        }
    *is_there = *is_there || read_template(uri, result);
    return PAWL_OK;
}

/* ---- Prompts ---- */

#define ARGUMENT(name) "{\"name\":\"" name "\",\"description\":\"" name "\",\"required\":true}"

static const struct {
    const char *name, *arguments;
} prompts[] = {
    { "test_simple_prompt", "[]" },
    { "test_prompt_with_arguments", "[" ARGUMENT("arg1") "," ARGUMENT("arg2") "]" },
    { "test_prompt_with_embedded_resource", "[" ARGUMENT("resourceUri") "]" },
    { "test_prompt_with_image", "[]" },
    { "test_input_required_result_prompt", "[]" },
};
#define PROMPTS (sizeof prompts / sizeof prompts[0])

void fixtures_put_prompts(struct rpc_exchange *exchange, struct buf *out)
{
    for (size_t i = 0; exchange->server->options.has_fixtures && i < PROMPTS; i++) {
        json_open(out, '{');
        json_put_text(out, "name", prompts[i].name);
        json_put_text(out, "description", "of the conformance suite");
        json_put_raw(out, "arguments", str_of(prompts[i].arguments));
        json_close(out, '}');
    }
}

#define SAID(content) "\"messages\":[{\"role\":\"user\",\"content\":" content "}"

static void say_arguments(const struct node *arguments, struct buf *result)
{
    struct buf words;

    buf_init(&words, &heap_libc, LIMIT_SCOPE);
    buf_fmt(&words, "Prompt with arguments: arg1='%.*s', arg2='%.*s'",
            STR_ARG(node_text(arguments, "arg1")), STR_ARG(node_text(arguments, "arg2")));
    buf_str(result, STR("\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
                        "\"text\":"));
    json_str(result, buf_view(&words));
    buf_str(result, STR("}}]"));
    buf_fini(&words);
}

static void say_resource(const struct node *arguments, struct buf *result)
{
    buf_str(result, STR("\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"resource\","
                        "\"resource\":{\"uri\":"));
    json_str(result, node_text(arguments, "resourceUri"));
    buf_str(result, STR(",\"mimeType\":\"text/plain\",\"text\":\"Embedded resource content for "
                        "testing.\"}}},{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
                        "\"Please process the embedded resource above.\"}}]"));
}

pawl_status fixture_prompt_get(struct rpc_exchange *exchange, str name, struct buf *result,
                               bool *is_there)
{
    const struct node *arguments = node_find(exchange->params, "arguments");

    if (!exchange->server->options.has_fixtures)
        return PAWL_OK;
    *is_there = true;
    if (str_is(name, "test_simple_prompt"))
        buf_str(result, STR(SAID("{\"type\":\"text\",\"text\":\"This is a simple prompt for "
                                 "testing.\"}") "]"));
    else if (str_is(name, "test_prompt_with_arguments"))
        say_arguments(arguments, result);
    else if (str_is(name, "test_prompt_with_embedded_resource"))
        say_resource(arguments, result);
    else if (str_is(name, "test_prompt_with_image"))
        buf_str(result, STR(SAID(IMAGE) ",{\"role\":\"user\",\"content\":{\"type\":\"text\","
                                        "\"text\":\"Please analyze the image above.\"}}]"));
    else if (str_is(name, "test_input_required_result_prompt"))
        return fixture_prompt_ask(exchange, result);
    else
        *is_there = false;
    return PAWL_OK;
}
