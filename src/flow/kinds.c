/* kinds.c - the kinds of steps: the list, and the rows that need no function. */
#include "flow/compile.h"

const struct step_kind *const step_kinds[STEP_KIND_COUNT] = {
#define X(name) &step_kind_##name,
    STEP_KINDS(X)
#undef X
};

/* Keys: an external step. */
static const struct known_key external_keys[] = {
    { "external", "true | false", "another program completes it, without a lease", NULL, "false" },
    { 0 },
};

/* Another program does the work, and completes or fails the step. */
const struct step_kind step_kind_external = {
    .word = "external",
    .about = "waits until another program completes it",
    .key = "external",
    .keys = external_keys,
    .why = "step",
    .is_external = true,
    .look = LOOK_GATE,
    .check = sleep_check,
};

/* Of a group with a limit in time or attempts of its own: group.c. */
const struct step_kind step_kind_group = { .word = "group", .is_without_result = true };

/* A step that was in a plan before an amend, and is in none now. */
const struct step_kind step_kind_gone = { .word = "gone", .is_gone = true };

const struct step_kind *step_kind_find(str word, str tool)
{
    for (uint32_t i = 0; i < STEP_KIND_COUNT; i++)
        if (str_is(word, step_kinds[i]->word) &&
            (!step_kinds[i]->tool || str_is(tool, step_kinds[i]->tool)))
            return step_kinds[i];
    return NULL;
}

const struct step_kind *step_kind_of_tool(str tool)
{
    for (uint32_t i = 0; i < STEP_KIND_COUNT; i++)
        if (step_kinds[i]->of_tool && str_is(tool, step_kinds[i]->of_tool))
            return step_kinds[i];
    return step_kind_find(STR("tool"), tool);
}
