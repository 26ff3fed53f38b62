/* scope.c - one unit of work: its arena and its error. */
#include "base/scope.h"
#include "base/assert.h"
#include "base/text_int.h"
#include <stdio.h>

void scope_init(struct scope *scope, const struct heap *heap, size_t limit)
{
    *scope = (struct scope){ .error.status = PAWL_OK };
    arena_init(&scope->arena, heap, limit);
}

void scope_fini(struct scope *scope)
{
    arena_fini(&scope->arena);
}

void scope_clear(struct scope *scope)
{
    arena_clear(&scope->arena);
    scope->error.status = PAWL_OK;
    scope->error.message[0] = '\0';
}

pawl_status scope_leave(struct scope *scope, struct scope *outer, pawl_status status)
{
    if (status)
        outer->error = scope->error;
    scope_fini(scope);
    return status;
}

pawl_status scope_fail(struct scope *scope, pawl_status status, const char *format, ...)
{
    char message[sizeof scope->error.message + 4]; /* room to see where a long one is cut */
    va_list args;
    str head;

    ASSERT(status != PAWL_OK);
    va_start(args, format);
    /* Written aside first: the arguments may point into the error that is replaced. */
    if (vsnprintf(message, sizeof message, format, args) < 0)
        message[0] = '\0';
    va_end(args);
    head = utf8_head(str_of(message), sizeof scope->error.message - 1);
    memcpy(scope->error.message, head.data, head.size);
    scope->error.message[head.size] = '\0';
    scope->error.status = status;
    return status;
}

pawl_status scope_no_memory(struct scope *scope)
{
    return scope_fail(scope, PAWL_NO_MEMORY, "out of memory, or over the limit of %zu bytes",
                      scope->arena.limit);
}
