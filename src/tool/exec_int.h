/* exec_int.h - what an exec step asks for, and how its output becomes the result. */
#ifndef PAWL_TOOL_EXEC_INT_H
#define PAWL_TOOL_EXEC_INT_H

#include "tool/tool_int.h"

/* How stdout is read. AS_IT_IS: JSON if it is JSON, else text. */
enum exec_as { AS_IT_IS, AS_JSON, AS_TEXT, AS_LINES };

struct exec_order {
    char **argv;      /* ends with NULL */
    char **variables; /* NAME=VALUE, ends with NULL */
    const char *cwd;  /* NULL: the host's */
    str input;        /* the bytes of stdin */
    enum exec_as as;
};

/* Read and check the arguments against the rules. false: the call has its failed result. */
bool exec_order_read(struct call *call, struct exec_order *out);

/* Give the call its result from what the program printed. */
void exec_output_read(struct call *call, enum exec_as as, str printed);

#endif
