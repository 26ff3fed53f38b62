/* modules.h - a store takes the types of a module, for the command line. */
#ifndef PAWL_API_MODULES_H
#define PAWL_API_MODULES_H

#include <pawl.h>

/* Stores that are opened from now on have their code registered right after, by who says so: their
 * alarms, which may start or signal it, wait for api_modules_ready(). */
void api_modules_expect(void);
bool api_modules_are_expected(void);
void api_modules_ready(pawl *p);

/* Load `path` in a child that is `program` --module-host. It lives until pawl_close(). NOT_KNOWN
 * names what is wrong with the module. A turn may take turn_ms; 0: five seconds. */
pawl_status api_module_load(pawl *p, const char *program, const char *path, int turn_ms,
                            pawl_error *error);

/* As pawl_code_register(), but a store in which the type is never used has no record of it: its
 * definition is put with its first instance. */
pawl_status api_code_offer(pawl *p, const struct pawl_code_type *type, pawl_error *error);

/* Read the files of all modules again. A build that differs takes the turns that begin from now on,
 * in every store that is open; those under way end in the one before. What becomes of each file, a
 * refused one too, is a line of the log: module.reloaded, module.refused. By one thread at a
 * time. */
void api_modules_reload(pawl *p);

/* A store beside another has the modules of that one, and shares their children. */
pawl_status api_modules_share(pawl *p, pawl_error *error);

/* The name of a type of the modules that were loaded; NULL: there are no more. */
const char *api_module_type(pawl *p, uint32_t index);

/* Has a code type its handler in this process, or in a child of it? */
bool api_has_code(pawl *p, const char *name);

/* The life of that child; the exit status. */
int api_module_host(const char *path);

#endif
