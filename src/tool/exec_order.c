/* exec_order.c - read the arguments of an exec step: {argv, input? | stdin?, env?, cwd?, as?}.
 *
 * A wrong argument stays wrong, so such a failure is final. Where the rules list programs, a step
 * sets only variables that the rules list too: many programs run others that a variable names. */
#include "model/words.h"
#include "tool/exec_int.h"
#include <sys/stat.h>

/* Arguments: exec. */
static const struct known_key exec_arguments[] = {
    { "argv", "[TEXT, ...]", "the program and its arguments; no shell reads them", NULL,
      "required" },
    { "input", "ANYTHING", "what the program reads on stdin, as JSON", NULL, "null" },
    { "stdin", "TEXT", "what it reads instead, as it is", NULL, "none" },
    { "env", "{NAME: VALUE}", "variables for the program", NULL, "none" },
    { "cwd", "FOLDER", "where it runs", NULL, "the folder of pawl's process" },
    { "as", "json | text | lines", "what becomes of its stdout", NULL,
      "JSON if it is JSON, null if it is blank, else text" },
    { 0 },
};

static bool is_scalar(const struct node *node)
{
    return node->kind == NODE_STRING || node->kind == NODE_NUMBER;
}

/* Numbers are allowed: a template may have given one. */
static bool read_argv(struct call *call, struct exec_order *order)
{
    const struct node *list = node_find(call->args, "argv");
    size_t count = 0;

    if (!list || list->kind != NODE_ARRAY || list->count == 0)
        return call_refuse(call, "exec: 'argv' must be an array of strings, the program first");
    order->argv = ARENA_ARRAY(&call->scope->arena, char *, (size_t)list->count + 1);
    for (const struct node *item = list->first; item && order->argv; item = item->next) {
        if (!is_scalar(item))
            return call_refuse(call, "exec: argv[%zu] must be a string, found %s", count,
                               node_kind_name(item->kind));
        order->argv[count] = arena_text(&call->scope->arena, item->text);
        if (!order->argv[count++])
            return call_no_memory(call);
    }
    return order->argv ? true : call_no_memory(call);
}

/* Where programs are listed, by the very text that argv names. */
static bool check_program(struct call *call, const struct exec_order *order)
{
    const struct tool_rules *rules = &call->toolbox->rules;
    str name = str_of(order->argv[0]);

    if (!rules->has_programs || rule_names_have(&rules->programs, name))
        return true;
    return call_refuse(call, "exec: '%.*s' is not listed in tools.exec.programs",
                       STR_ARG(words_shown(name)));
}

static bool read_input(struct call *call, struct exec_order *order)
{
    const struct node *json = node_find(call->args, "input");
    const struct node *text = node_find(call->args, "stdin");

    if (json && text)
        return call_refuse(call, "exec: 'input' and 'stdin' are two inputs; it takes one");
    if (text && text->kind != NODE_STRING)
        return call_refuse(call, "exec: 'stdin' must be a text, found %s; 'input' takes any value",
                           node_kind_name(text->kind));
    order->input = text ? text->text : STR("null");
    if (json)
        order->input = node_keep(json, &call->scope->arena);
    return order->input.data ? true : call_no_memory(call);
}

/* ---- Variables ---- */

static bool is_variable_name(str name)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

        if (!is_letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.size > 0;
}

static bool check_variable(struct call *call, const struct node *item)
{
    const struct tool_rules *rules = &call->toolbox->rules;
    str name = words_shown(item->key);

    if (!is_variable_name(item->key))
        return call_refuse(call, "exec: '%.*s' cannot name a variable: A-Z a-z 0-9 _", STR_ARG(name));
    if (environment_is_of_step(item->key))
        return call_refuse(call, "exec: the variable '%.*s' is set by pawl", STR_ARG(name));
    if (!is_scalar(item) && item->kind != NODE_BOOL)
        return call_refuse(call, "exec: env.%.*s must be a string, found %s", STR_ARG(name),
                           node_kind_name(item->kind));
    if (rules->has_programs && !rule_names_have(&rules->variables, item->key))
        return call_refuse(call,
                           "exec: the variable '%.*s' is not listed in tools.exec.env; where "
                           "programs are listed, variables must be too",
                           STR_ARG(name));
    return true;
}

static bool read_variables(struct call *call, struct exec_order *order)
{
    const struct node *env = node_find(call->args, "env");
    size_t count = 0;

    if (env && env->kind != NODE_OBJECT)
        return call_refuse(call, "exec: 'env' must be an object, NAME: VALUE, found %s",
                           node_kind_name(env->kind));
    order->variables = ARENA_ARRAY(&call->scope->arena, char *, env ? (size_t)env->count + 1 : 1);
    for (const struct node *item = env ? env->first : NULL; item; item = item->next) {
        str value = item->kind == NODE_BOOL ? str_of(item->truth ? "true" : "false") : item->text;

        if (!check_variable(call, item))
            return false;
        if (order->variables)
            order->variables[count++] =
                environment_variable(&call->scope->arena, item->key, value);
    }
    return call->scope->arena.failed ? call_no_memory(call) : true;
}

/* ---- Where, and how ---- */

/* A relative path of a listed program would mean another file in another folder. */
static bool read_cwd(struct call *call, struct exec_order *order)
{
    const struct node *cwd = node_find(call->args, "cwd");
    struct stat found;

    if (!cwd)
        return true;
    if (cwd->kind != NODE_STRING || cwd->text.size == 0)
        return call_refuse(call, "exec: 'cwd' must be the path of a folder");
    order->cwd = arena_text(&call->scope->arena, cwd->text);
    if (!order->cwd)
        return call_no_memory(call);
    if (call->toolbox->rules.has_programs && order->argv[0][0] != '/' &&
        strchr(order->argv[0], '/'))
        return call_refuse(call, "exec: with 'cwd', a listed program must be an absolute path or a "
                                 "name without '/'");
    if (stat(order->cwd, &found) == 0 && S_ISDIR(found.st_mode))
        return true;
    call_fail(call, "exec: 'cwd': expected a folder, found none at '%.*s'",
              STR_ARG(words_shown(cwd->text)));
    return false;
}

static bool read_as(struct call *call, struct exec_order *order)
{
    static const char *const words[] = {
        [AS_JSON] = "json", [AS_TEXT] = "text", [AS_LINES] = "lines"
    };
    const struct node *as = node_find(call->args, "as");

    order->as = AS_IT_IS;
    for (int i = AS_JSON; as && i <= AS_LINES; i++)
        if (as->kind == NODE_STRING && str_is(as->text, words[i]))
            order->as = (enum exec_as)i;
    if (as && order->as == AS_IT_IS)
        return call_refuse(call, "exec: 'as' must be json, text or lines");
    return true;
}

bool exec_order_read(struct call *call, struct exec_order *out)
{
    *out = (struct exec_order){ .cwd = NULL };
    return call_knows(call, exec_arguments) && read_argv(call, out) && check_program(call, out) &&
           read_input(call, out) && read_variables(call, out) && read_cwd(call, out) &&
           read_as(call, out);
}
