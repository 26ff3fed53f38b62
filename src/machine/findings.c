/* findings.c - everything that is wrong or odd with a document, each with its place. */
#include "base/grow.h"
#include "machine/machine_int.h"
#include <stdio.h>

static void add(struct compiler *compiler, const struct node *node, const char *message,
                bool is_warning)
{
    struct findings *findings = compiler->findings;
    struct finding *one;

    /* No memory for it shows in the arena, and machine_compile() looks there. */
    if (!findings ||
        !GROW(&compiler->scope->arena, findings->items, findings->count, findings->capacity))
        return;
    one = &findings->items[findings->count++];
    *one = (struct finding){ .line = node->line, .column = node->column, .is_warning = is_warning };
    (void)snprintf(one->message, sizeof one->message, "%s", message);
}

void compiler_error(struct compiler *compiler, const struct node *node, const char *format, ...)
{
    pawl_status failure = compiler->is_inline ? PAWL_INVALID_DECLARATION : PAWL_INVALID_DEFINITION;
    char message[sizeof((struct finding *)0)->message];
    va_list args;

    va_start(args, format);
    if (vsnprintf(message, sizeof message, format, args) < 0)
        message[0] = '\0';
    va_end(args);
    if (compiler->error_count == 0)
        (void)scope_fail(compiler->scope, failure, "line %u, column %u: %s", node->line,
                         node->column, message);
    if (compiler->error_count < FINDINGS_MAX)
        add(compiler, node, message, false);
    compiler->error_count++;
}

void compiler_warn(struct compiler *compiler, const struct node *node, const char *format, ...)
{
    char message[sizeof((struct finding *)0)->message];
    va_list args;

    if (compiler->is_inline || compiler->warning_count++ >= FINDINGS_MAX)
        return;
    va_start(args, format);
    if (vsnprintf(message, sizeof message, format, args) < 0)
        message[0] = '\0';
    va_end(args);
    add(compiler, node, message, true);
}

void findings_refer(struct findings *findings, struct scope *scope,
                    const struct reference *reference)
{
    if (findings->reference_count == REFERENCE_COUNT_MAX)
        return;
    if (!GROW(&scope->arena, findings->references, findings->reference_count,
              findings->reference_capacity))
        return;
    findings->references[findings->reference_count++] = *reference;
}
