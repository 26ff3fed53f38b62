/* module.c - the types of a module become code types of a store. */
#include "api/module.h"
#include "api/api.h"
#include "module/module.h"

static pawl_status bind_types(pawl *p, struct scope *scope, struct module *module)
{
    pawl_status status = PAWL_OK;

    for (uint32_t i = 0; i < module_type_count(module) && status == PAWL_OK; i++) {
        const struct module_type *type = module_type_at(module, i);

        status = engine_code_bind(p->engine, &type->binding, scope);
    }
    return status;
}

static void report(void *context, const char *words)
{
    engine_log(context, PAWL_LOG_ERROR, "module.failed", words);
}

pawl_status api_module_load(pawl *p, const char *program, const char *path, int turn_ms,
                            pawl_error *error)
{
    struct module_options options = { program, path, turn_ms, report, p->engine };
    struct module *module = NULL;
    struct module **modules;
    struct scope scope;
    pawl_status status;

    api_enter(p, &scope);
    modules = heap_resize(&p->heap, p->modules, sizeof *modules * p->module_count,
                          sizeof *modules * (p->module_count + 1));
    if (!modules)
        return api_leave(&scope, scope_no_memory(&scope), error);
    p->modules = modules;
    status = module_open(&p->heap, &options, &scope, &module);
    p->modules[p->module_count++] = module; /* NULL: none */
    if (status == PAWL_OK)
        status = bind_types(p, &scope, module);
    return api_leave(&scope, status, error);
}

pawl_status api_modules_share(pawl *p, pawl_error *error)
{
    pawl_status status = PAWL_OK;
    struct scope scope;

    api_enter(p, &scope);
    for (uint32_t i = 0; p->first && i < p->first->module_count && status == PAWL_OK; i++)
        if (p->first->modules[i])
            status = bind_types(p, &scope, p->first->modules[i]);
    return api_leave(&scope, status, error);
}

bool api_has_code(pawl *p, const char *name)
{
    return engine_has_code(p->engine, str_of(name));
}

void api_modules_close(pawl *p)
{
    for (uint32_t i = 0; i < p->module_count; i++)
        module_close(p->modules[i]);
    heap_free(&p->heap, p->modules, sizeof *p->modules * p->module_count);
}

int api_module_host(const char *path)
{
    return module_host(path);
}
