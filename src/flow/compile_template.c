/* compile_template.c - what authors write into a template because other languages have it: an index in
 * brackets, a filter, an operator, another root. A template has paths and nothing else, so that
 * such a text is a key which hardly any value has, and "" comes of it. */
#include "flow/compile.h"
#include "model/words.h"
#include <stdio.h>

static bool has_text(str text, const char *part)
{
    return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

static bool calculates(str text)
{
    static const char *const signs[] = { " + ", " - ", " * ", " / ",   " % ",  " .. ", " == ", " ~= ",
                                         " > ", " < ", " ? ", " and ", " or ", "()",   "??",   NULL };

    for (const char *const *sign = signs; *sign; sign++)
        if (has_text(text, *sign))
            return true;
    return false;
}

/* `l[1].a["b"]` as the path that it means: `l.1.a.b`. */
static void print_path(str text, char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < text.size && used + 1 < size; i++) {
        char byte = text.data[i];

        if (byte == '[' && used > 0)
            out[used++] = '.';
        else if (!memchr("[]\"'", byte, 4))
            out[used++] = byte;
    }
    out[used] = '\0';
}

static void print_root(str text, char out[TEMPLATE_HINT_SIZE])
{
    static const char *const roots[] = { "input", "context", "steps", "instance", NULL };
    size_t size = 0;
    const char *nearest;

    while (size < text.size && !memchr(".[| ", text.data[size], 4))
        size++;
    nearest = words_nearest((str){ text.data, size }, roots);
    if (nearest && !str_is((str){ text.data, size }, nearest))
        (void)snprintf(out, TEMPLATE_HINT_SIZE, "; did you mean '%s'?", nearest);
}

void compile_template_hint(str template, char out[TEMPLATE_HINT_SIZE])
{
    str text = { template.data + 2, template.size - 4 };
    char path[WORDS_SIZE_MAX];

    out[0] = '\0';
    if (has_text(text, "|"))
        (void)snprintf(out, TEMPLATE_HINT_SIZE,
                       "; a template has no filters: let a step before it make the value");
    else if (calculates(text))
        (void)snprintf(out, TEMPLATE_HINT_SIZE,
                       "; a template does not calculate: let a step before it make the value");
    else if (has_text(text, "[")) {
        print_path(text, path, sizeof path);
        (void)snprintf(out, TEMPLATE_HINT_SIZE,
                       "; write {{%s}}: a path has dots, and the first element is 0", path);
    } else {
        print_root(text, out);
    }
}
