/* modules.c - a program with a reduce of its own, and none of the code: that comes from a module. With
 * -DFULL it is a full pawl (pawl_main()); else it loads the module itself. */
#include <pawl_main.h>
#include <stdio.h>
#include <string.h>

/* Of its own, and of the module as well: each keeps to its own. */
const pawl_code_type *combat(void);
const pawl_code_type *combat(void)
{
    return NULL;
}

static bool apply_damage(void *context, struct sqlite3 *db, const char *args, char *words, size_t size)
{
    (void)context, (void)db, (void)words, (void)size;
    printf("hit %s\n", args);
    fflush(stdout);
    return true;
}

static pawl_status opened(void *context, pawl *p, pawl_error *error)
{
    return pawl_reduce_register(p, "apply_damage", apply_damage, context, error);
}

#ifdef FULL
int main(int argc, char **argv)
{
    return pawl_main_with(argc, argv, NULL, opened, NULL);
}
#else
#include <dlfcn.h>

static const pawl_module *load(const char *path)
{
    const pawl_module *(*open_module)(void) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "pawl_module_open") : NULL;

    if (!symbol)
        fprintf(stderr, "%s\n", dlerror());
    memcpy(&open_module, &symbol, sizeof symbol);
    return open_module ? open_module() : NULL;
}

int main(int argc, char **argv)
{
    const pawl_module *module = argc > 1 ? load(argv[1]) : NULL;
    pawl_create_args args = { .definition = "combat", .input = "{\"target_id\":7,\"damage\":20}" };
    pawl_error error = { PAWL_OK, "" };
    pawl_id id;
    pawl *p;

    if (!module || pawl_open(&p, "memory:", NULL, &error) || opened(NULL, p, &error))
        return 1;
    for (const pawl_code_fn *type = module->types; *type && !error.status; type++)
        pawl_code_register(p, (*type)(), &error);
    if (error.status || pawl_create(p, &args, &id, &error))
        fprintf(stderr, "%s\n", error.message);
    pawl_close(p);
    return (int)error.status;
}
#endif
