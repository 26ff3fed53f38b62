/* flow_rig.h - a flow without an engine: decide, write down, read back, fold.
 *
 * Every draft goes through its printed body and back, and after every event the memory is
 * printed, loaded and printed again: what a test sees is what a restart would see. Each decision
 * is found again from its first entry alone, as a check of the history finds it. */
#ifndef PAWL_TESTS_UNIT_FLOW_RIG_H
#define PAWL_TESTS_UNIT_FLOW_RIG_H

#include "flow/flow.h"
#include "lib/test.h"

#define RIG_ENTRIES 4096

struct rig {
    struct scope *scope;
    struct definition *definition;
    struct arena arena;
    void *memory;
    str input;
    uint32_t state;
    uint64_t seq;
    int64_t now_ms;
    struct flow_attempts attempts;
    struct buf story; /* "start [...]\n" and so on, of the last event */
    str last_payload; /* of the last entry */
    bool is_attached; /* the memory reads what it does not keep from `payloads` */
    struct payload_source source;
    str payloads[RIG_ENTRIES]; /* by number */
    uint32_t read_count;       /* how often one was read again */
};

static inline struct definition *rig_compile(struct scope *scope, const char *text,
                                             struct findings *findings)
{
    struct definition *definition = NULL;
    struct node *document = NULL;

    EXPECT_OK(node_read(scope, str_of(text), &document));
    if (flow_compile(scope, document, findings, &definition) != PAWL_OK)
        test_fail(__FILE__, __LINE__, "not compiled: %s", scope->error.message);
    return definition;
}

static inline void rig_init(struct rig *rig, struct scope *scope, const char *text,
                            const char *input)
{
    *rig = (struct rig){ .scope = scope, .now_ms = 1000, .input = str_of(input) };
    rig->definition = rig_compile(scope, text, NULL);
    arena_init(&rig->arena, &heap_libc, 0);
    buf_init(&rig->story, &heap_libc, 0);
    rig->memory = flow_behavior.memory_new(rig->definition, rig->input, &rig->arena);
    EXPECT(rig->memory != NULL);
}

static inline pawl_status rig_read(void *context, struct scope *scope, uint32_t seq, str *out)
{
    struct rig *rig = context;

    EXPECT(seq > 0 && seq <= rig->seq + 1 && seq < RIG_ENTRIES);
    rig->read_count++;
    *out = arena_str(&scope->arena, rig->payloads[seq]);
    return rig->payloads[seq].data && !out->data ? PAWL_NO_MEMORY : PAWL_OK;
}

/* From now on the memory may leave payloads in the history. */
static inline void rig_attach(struct rig *rig)
{
    rig->is_attached = true;
    rig->source = (struct payload_source){ rig_read, rig };
    flow_behavior.attach(rig->memory, &rig->source);
}

static inline void rig_fini(struct rig *rig)
{
    buf_fini(&rig->story);
    arena_fini(&rig->arena);
}

static inline str rig_print(struct rig *rig)
{
    struct buf buf;
    str text;

    buf_init(&buf, &heap_libc, 0);
    flow_behavior.memory_print(rig->definition, rig->memory, &buf);
    text = buf_keep(&buf, &rig->scope->arena);
    buf_fini(&buf);
    EXPECT(text.data != NULL);
    return text;
}

static inline void rig_reload(struct rig *rig)
{
    str before = rig_print(rig);

    EXPECT_OK(flow_behavior.memory_load(rig->definition, before, rig->input, rig->scope,
                                        &rig->arena, &rig->memory));
    EXPECT_STR(rig_print(rig), before.data);
    if (rig->is_attached)
        rig_attach(rig);
}

static inline void rig_tell(struct rig *rig, const struct draft *draft, str body)
{
    buf_str(&rig->story, rig->definition->transitions[draft->transition].action);
    if (draft->step > 0)
        buf_fmt(&rig->story, " %.*s.%u#%u",
                STR_ARG(flow_step_name(rig->definition, draft->step - 1)), draft->ordinal,
                draft->attempt);
    if (draft->payload.data)
        buf_fmt(&rig->story, " %.*s", STR_ARG(draft->payload));
    if (body.size > 2)
        buf_fmt(&rig->story, " %.*s", STR_ARG(body));
    buf_byte(&rig->story, '\n');
}

static inline void rig_fold(struct rig *rig, const struct draft *draft)
{
    const struct transition *transition = &rig->definition->transitions[draft->transition];
    struct effect_list effects = { 0 };
    struct entry_view view = { .seq = (uint32_t)rig->seq + 1,
                               .transition = draft->transition,
                               .step = draft->step,
                               .ordinal = draft->ordinal,
                               .attempt = draft->attempt,
                               .payload = draft->payload,
                               .actor = draft->actor,
                               .effects = &effects,
                               .at_ms = rig->now_ms };
    struct buf buf;
    str body;

    buf_init(&buf, &heap_libc, 0);
    effects_print(&draft->effects, &buf);
    body = buf_keep(&buf, &rig->scope->arena);
    buf_fini(&buf);
    EXPECT_OK(effects_read(rig->scope, body, &effects));
    EXPECT_EQ(transition->from, rig->state);
    if (rig->seq + 1 < RIG_ENTRIES)
        rig->payloads[rig->seq + 1] = arena_str(&rig->scope->arena, draft->payload);
    EXPECT_OK(flow_behavior.apply(rig->definition, rig->memory, &view, rig->scope, &rig->arena));
    EXPECT_OK(flow_attempts_apply(rig->scope, &rig->attempts, &view));
    rig_tell(rig, draft, body);
    rig->state = transition->to;
    rig->last_payload = draft->payload;
    rig->seq++;
}

static inline bool rig_is_same(const struct draft *a, const struct draft *b)
{
    struct buf left, right;
    bool same;

    buf_init(&left, &heap_libc, 0);
    buf_init(&right, &heap_libc, 0);
    effects_print(&a->effects, &left);
    effects_print(&b->effects, &right);
    same = a->transition == b->transition && a->step == b->step && a->ordinal == b->ordinal &&
           a->attempt == b->attempt && str_eq(a->payload, b->payload) &&
           str_eq(buf_view(&left), buf_view(&right));
    buf_fini(&left);
    buf_fini(&right);
    return same;
}

/* What a check of the history will do: find the event again from the first entry, and decide. */
static inline void rig_expect_found(struct rig *rig, const struct standing *standing,
                                    const struct decision *decision)
{
    const struct draft *first = &decision->drafts[0];
    struct entry_view view = { .transition = first->transition,
                               .step = first->step,
                               .ordinal = first->ordinal,
                               .attempt = first->attempt,
                               .payload = first->payload,
                               .reason = first->reason,
                               .actor = first->actor,
                               .effects = &first->effects,
                               .at_ms = rig->now_ms };
    struct decision again = { 0 };
    struct event event;
    bool found = false;

    for (uint32_t n = 0;
         !found && flow_behavior.event_of(rig->definition, rig->memory, &view, n, &event); n++)
        found = flow_behavior.decide(rig->definition, standing, &event, rig->scope, &again) ==
                    PAWL_OK &&
                rig_is_same(first, &again.drafts[0]);
    EXPECT(found);
    EXPECT_EQ(again.count, decision->count);
    for (uint32_t i = 0; i < again.count; i++)
        EXPECT(rig_is_same(&decision->drafts[i], &again.drafts[i]));
}

static inline pawl_status rig_do(struct rig *rig, struct event event)
{
    struct standing standing = { rig->state, rig->seq, rig->memory };
    struct decision decision = { 0 };
    pawl_status status;

    event.at_ms = rig->now_ms;
    buf_clear(&rig->story);
    status = flow_behavior.decide(rig->definition, &standing, &event, rig->scope, &decision);
    EXPECT((status == PAWL_OK) == (decision.count > 0));
    if (status == PAWL_OK)
        rig_expect_found(rig, &standing, &decision);
    for (uint32_t i = 0; i < decision.count; i++)
        rig_fold(rig, &decision.drafts[i]);
    rig_reload(rig);
    return status;
}

static inline pawl_status rig_step(struct rig *rig, enum event_kind kind, uint32_t ordinal,
                                   const char *payload)
{
    return rig_do(
        rig, (struct event){
                 .kind = kind, .ordinal = ordinal, .is_leased = true, .payload = str_of(payload) });
}

static inline pawl_status rig_timer(struct rig *rig, const char *name, uint32_t ordinal)
{
    return rig_do(rig,
                  (struct event){ .kind = EVENT_TIMER, .ordinal = ordinal, .name = str_of(name) });
}

static inline void rig_begin(struct rig *rig)
{
    EXPECT_OK(rig_step(rig, EVENT_START, 0, NULL));
}

static inline void rig_run(struct rig *rig, uint32_t ordinal, const char *result)
{
    EXPECT_OK(rig_step(rig, EVENT_STEP_START, ordinal, NULL));
    EXPECT_OK(rig_step(rig, EVENT_STEP_DONE, ordinal, result));
}

#define EXPECT_STORY(rig, text)     EXPECT_TEXT(buf_text(&(rig)->story), (text))
#define EXPECT_STORY_HAS(rig, text) EXPECT_HAS(buf_text(&(rig)->story), (text))

/* Refused with these words and a place. */
static inline void rig_refused(struct scope *scope, const char *text, const char *part)
{
    struct definition *definition = NULL;
    struct node *document = NULL;

    EXPECT_OK(node_read(scope, str_of(text), &document));
    if (flow_compile(scope, document, NULL, &definition) != PAWL_INVALID_DEFINITION)
        test_fail(__FILE__, __LINE__, "not refused: %s", text);
    EXPECT_HAS(scope->error.message, part);
    EXPECT_HAS(scope->error.message, "line ");
}

static inline struct flow_call rig_call(struct rig *rig, uint32_t ordinal)
{
    struct flow_call call = { 0 };

    EXPECT_OK(flow_call(rig->definition, rig->memory, ordinal, rig->scope, &call));
    return call;
}

static inline const char *rig_name(struct rig *rig, uint32_t ordinal)
{
    return arena_str(&rig->scope->arena, rig_call(rig, ordinal).step).data;
}

static inline const char *rig_args(struct rig *rig, uint32_t ordinal)
{
    return arena_str(&rig->scope->arena, rig_call(rig, ordinal).args).data;
}

static inline void rig_fail(struct rig *rig, uint32_t ordinal, const char *error)
{
    EXPECT_OK(rig_step(rig, EVENT_STEP_START, ordinal, NULL));
    EXPECT_OK(rig_step(rig, EVENT_STEP_FAILED, ordinal, error));
}

#endif
