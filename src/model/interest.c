/* interest.c - names of the rows by which a broadcast finds the instances that keep its signal. */
#include "model/interest.h"

str interest_name(struct arena *arena, str signal, str value)
{
    size_t size = 1 + signal.size + (value.data ? 1 + value.size : 0);
    char *name = arena_alloc(arena, size);

    if (!name)
        return STR_NONE;
    name[0] = '~';
    memcpy(name + 1, signal.data, signal.size);
    if (value.data) {
        name[1 + signal.size] = '=';
        memcpy(name + 2 + signal.size, value.data, value.size);
    }
    return (str){ name, size };
}

bool interest_fits(str name, str signal, str value)
{
    size_t size = 1 + signal.size;

    if (!interest_is(name) || name.size < size || !str_starts(str_from(name, 1), signal))
        return false;
    if (!value.data)
        return name.size == size;
    return name.size > size && name.data[size] == '=' && str_eq(str_from(name, size + 1), value);
}
