/* compile_cancel.c - `cancel: false`, or `cancel: {not_from: [STEP, ...]}`. */
#include "flow/compile.h"
#include "model/words.h"

/* Among the names and keys of all steps. No suggestion beyond the errors that are shown: each costs
 * a comparison with every step. */
const char *compile_nearest_step(struct compilation *compiler, str text)
{
    struct arena *arena = &compiler->scope->arena;
    const char **words = compiler->step_words;
    uint32_t next = 0;

    if (!words) {
        words = ARENA_ARRAY(arena, const char *, 2 * (size_t)compiler->count + 1);
        for (uint32_t i = 0; words && i < compiler->count; i++) {
            if (compiler->steps[i].key.data)
                words[next++] = arena_str(arena, compiler->steps[i].key).data;
            words[next++] = arena_str(arena, compiler->steps[i].plan.name).data;
        }
        compiler->step_words = arena->failed ? NULL : words;
    }
    return compiler->step_words && compiler->report.error_count < FINDINGS_MAX
               ? words_nearest(text, compiler->step_words)
               : NULL;
}

static void report_unknown(struct compilation *compiler, const struct node *item)
{
    const char *nearest = compile_nearest_step(compiler, item->text);
    str name = words_shown(item->text);

    if (nearest)
        compile_error(compiler, item,
                      "'cancel.not_from' names '%.*s', and there is no such step; did you mean "
                      "'%.*s'?",
                      STR_ARG(name), STR_ARG(words_shown(str_of(nearest))));
    else
        compile_error(compiler, item,
                      "'cancel.not_from' names '%.*s', and there is no such step; name steps of "
                      "this flow",
                      STR_ARG(name));
}

static void bar_from(struct compilation *compiler, const struct node *item)
{
    uint32_t step = item->kind == NODE_STRING ? compile_find_step(compiler, item->text) : STEP_NONE;

    if (item->kind != NODE_STRING)
        compile_error(compiler, item, "'cancel.not_from' lists names of steps, found %s",
                      node_kind_name(item->kind));
    else if (step == STEP_NONE)
        report_unknown(compiler, item);
    else if (compiler->steps[step].plan.bars_cancel)
        compile_warning(compiler, item, "'cancel.not_from' names '%.*s' twice; once is enough",
                        STR_ARG(words_shown(item->text)));
    else
        compiler->steps[step].plan.bars_cancel = true;
}

static void read_rule(struct compilation *compiler)
{
    const struct node *list = node_find(compiler->cancel_node, "not_from");

    compile_keys(compiler, NULL, compiler->cancel_node, cancel_keys, "cancel.");
    if (!list) {
        compile_error(compiler, compiler->cancel_node,
                      "'cancel' needs 'not_from', a list of one or more steps");
        return;
    }
    if (list->kind != NODE_ARRAY || list->count == 0) {
        compile_error(compiler, list,
                      "'cancel.not_from' must be a list of one or more steps, found %s",
                      list->kind == NODE_ARRAY ? "an empty one" : node_kind_name(list->kind));
        return;
    }
    compiler->cancel = CANCEL_NOT_FROM;
    for (const struct node *item = list->first; item; item = item->next)
        bar_from(compiler, item);
}

void compile_cancel(struct compilation *compiler)
{
    const struct node *rule = compiler->cancel_node;

    if (!rule)
        return;
    if (rule->kind == NODE_OBJECT)
        read_rule(compiler);
    else if (rule->kind == NODE_BOOL)
        compiler->cancel = rule->truth ? CANCEL_ALWAYS : CANCEL_NEVER;
    else
        compile_error(compiler, rule,
                      "'cancel' must be true, false or {not_from: [STEP, ...]}, found %s",
                      node_kind_name(rule->kind));
}
