/* pawl_main.h - your code as a module that `pawl serve --module` loads, or as a program of your own
 * that is a full pawl.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     PAWL_MODULE(buff, patrol);         cc -O2 -Wall -shared -fPIC -o flows.so flows.c
 *                                        pawl serve --module ./flows.so
 *
 *     PAWL_MODULE(buff, patrol);
 *     int main(int argc, char **argv) { return pawl_main(argc, argv, pawl_module_open()); }
 */
#ifndef PAWL_MAIN_H
#define PAWL_MAIN_H

#include <pawl.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows whenever a module that was built before could not be called any more. */
#define PAWL_MODULE_ABI 2

typedef const pawl_code_type *(*pawl_code_fn)(void);

typedef struct pawl_module {
    uint32_t abi;                     /* PAWL_MODULE_ABI of the header it was built with */
    uint32_t type_size, var_size;     /* of pawl_code_type and pawl_var there */
    const char *version;              /* PAWL_VERSION there */
    const pawl_code_fn *types;        /* ending in NULL */
} pawl_module;

/* The table of types, by the names that PAWL_CODE gave them. Asked for whenever it is needed:
 * nothing has to have been called before. */
#define PAWL_MODULE(...)                                                                           \
    PAWL_API const pawl_module *pawl_module_open(void);                                            \
    const pawl_module *pawl_module_open(void)                                                      \
    {                                                                                              \
        static const pawl_code_fn types[] = { __VA_ARGS__, NULL };                                 \
        static const pawl_module module = { PAWL_MODULE_ABI, sizeof(pawl_code_type),               \
                                            sizeof(pawl_var), PAWL_VERSION, types };               \
                                                                                                   \
        return &module;                                                                            \
    }                                                                                              \
    struct pawl_module

PAWL_API const pawl_module *pawl_module_open(void); /* yours, by PAWL_MODULE() */

/* The whole command line, with the module's types registered in every store it opens. The exit
 * status. `module` may be NULL. In libpawl-main.a. */
PAWL_API int pawl_main(int argc, char **argv, const pawl_module *module);

/* The same, with tools and reduces of your own. `opened` is called with every store that is opened
 * to be worked with, before anything happens in it, to register them (pawl_tool_register(),
 * pawl_reduce_register()). If it fails, the command prints its error and ends. */
typedef pawl_status (*pawl_opened_fn)(void *context, pawl *p, pawl_error *error);
PAWL_API int pawl_main_with(int argc, char **argv, const pawl_module *module, pawl_opened_fn opened,
                            void *context);

#ifdef __cplusplus
}
#endif
#endif
