/* findings.c - everything that is wrong or odd with a document, each with its place. */
#include "base/grow.h"
#include "machine/machine_int.h"
#include "model/words.h"
#include <stdio.h>

void findings_report(struct reporter *reporter, const struct node *node, str step, bool is_warning,
                     const char *format, va_list args)
{
    struct finding finding = { .line = node->line,
                               .column = node->column,
                               .is_warning = is_warning };
    uint32_t *count = is_warning ? &reporter->warning_count : &reporter->error_count;
    struct findings *findings = reporter->findings;
    int used = 0;

    if (is_warning && reporter->is_inline)
        return;
    if (step.data)
        used = snprintf(finding.message, sizeof finding.message,
                        "step '%.*s': ", STR_ARG(words_shown(step)));
    if (used < 0 ||
        vsnprintf(finding.message + used, sizeof finding.message - (size_t)used, format, args) < 0)
        finding.message[0] = '\0';
    if (!is_warning && *count == 0)
        (void)scope_fail(reporter->scope,
                         reporter->is_inline ? PAWL_INVALID_DECLARATION : PAWL_INVALID_DEFINITION,
                         "line %u, column %u: %s", finding.line, finding.column, finding.message);
    if ((*count)++ < FINDINGS_MAX && findings &&
        GROW(&reporter->scope->arena, findings->items, findings->count, findings->capacity))
        findings->items[findings->count++] = finding;
}

void compiler_error(struct compiler *compiler, const struct node *node, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    findings_report(&compiler->report, node, STR_NONE, false, format, args);
    va_end(args);
}

void compiler_warn(struct compiler *compiler, const struct node *node, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    findings_report(&compiler->report, node, STR_NONE, true, format, args);
    va_end(args);
}

void findings_refer(struct findings *findings, struct scope *scope,
                    const struct reference *reference)
{
    if (findings->reference_count < REFERENCE_COUNT_MAX &&
        GROW(&scope->arena, findings->references, findings->reference_count,
             findings->reference_capacity))
        findings->references[findings->reference_count++] = *reference;
}
