/* outside_names.c - StartPatrol here, start_patrol outside. */
#include "base/limits.h"
#include "code/code_int.h"

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_identifier(const char *name)
{
    for (const char *at = name; *at; at++)
        if (!is_upper(*at) && !is_lower(*at) && *at != '_')
            return false;
    return true;
}

/* A word begins at a capital after a small letter, and at the last of several before one. */
static bool begins_word(const char *name, size_t at)
{
    return at > 0 && is_upper(name[at]) &&
           (is_lower(name[at - 1]) || (is_upper(name[at - 1]) && is_lower(name[at + 1]) &&
                                       !(name[at + 1] >= '0' && name[at + 1] <= '9')));
}

size_t pawl_wire_name(const char *name, char *out, size_t size)
{
    bool is_ours = name && is_identifier(name);
    size_t length = 0;

    for (size_t i = 0; name && name[i]; i++) {
        char c = is_ours && is_upper(name[i]) ? (char)(name[i] - 'A' + 'a') : name[i];

        if (is_ours && begins_word(name, i)) {
            if (length + 1 < size)
                out[length] = '_';
            length++;
        }
        if (length + 1 < size)
            out[length] = c;
        length++;
    }
    if (size > 0)
        out[length < size ? length : size - 1] = '\0';
    return length;
}

unsigned names_count(const char *const *names)
{
    unsigned count = 0;

    while (names && names[count])
        count++;
    return count;
}

unsigned names_find(const char *const *names, const char *name)
{
    char wire[LIMIT_NAME + 1];
    unsigned at;

    if (!name || pawl_wire_name(name, wire, sizeof wire) >= sizeof wire)
        return names_count(names);
    for (at = 0; names && names[at]; at++)
        if (strcmp(names[at], name) == 0 || strcmp(names[at], wire) == 0)
            break;
    return at;
}
