/* stores_put.c - stores are made, listed, and handed to programs. */
#include "api/stores_int.h"

pawl_status stores_put(pawl *p, struct scope *scope, str name, bool *is_new)
{
    struct stores *stores = p->stores;
    struct member *member;
    pawl_status status = PAWL_OK;

    *is_new = false;
    if (!store_name_is_valid(name))
        return scope_fail(
            scope, PAWL_INVALID_REQUEST,
            "the store's name: expected 1..%d of A-Za-z0-9._- that begin with a letter "
            "or a digit",
            STORE_NAME_MAX);
    if (str_is(name, STORE_DEFAULT))
        return PAWL_OK;
    if (!stores)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "an attachment has no stores beside it");
    guard_lock(&stores->lock);
    member = member_find(stores, name);
    if (member)
        member_wait(stores, member);
    *is_new = !(member && member->p) && !store_is_beside(scope, stores_url(stores), name);
    if (*is_new)
        status = store_make_room_beside(scope, stores_url(stores));
    if (status == PAWL_OK && !member && !(member = member_add(p, name)))
        status = scope_no_memory(scope);
    if (status == PAWL_OK)
        status = member_use(p, scope, member, false);
    if (status == PAWL_OK) {
        member->users--;
        member->left_at_ms = stores_tick_ms(p);
        member->is_pinned |= !str_starts(stores_url(stores), STR("sqlite:"));
    }
    guard_unlock(&stores->lock);
    return status;
}

/* In memory the list is all there is; else it may hold less than the folder, never more. */
static pawl_status names_in_memory(const struct stores *stores, struct scope *scope, str **out,
                                   uint32_t *count)
{
    uint32_t room = 0;

    for (const struct member *member = stores->first; member; member = member->next)
        room++;
    *out = ARENA_ARRAY(&scope->arena, str, room + 1);
    TRY_MEMORY(scope, *out);
    for (const struct member *member = stores->first; member; member = member->next) {
        uint32_t at = *count;

        if (!member->p) /* it could not be made */
            continue;
        (*count)++;

        while (at > 0 && str_compare((*out)[at - 1], str_of(member->name)) > 0) {
            (*out)[at] = (*out)[at - 1];
            at--;
        }
        (*out)[at] = str_of(member->name);
    }
    return PAWL_OK;
}

pawl_status stores_names(pawl *p, struct scope *scope, str **out, uint32_t *count)
{
    struct stores *stores = p->stores;
    str *names = NULL, *all;
    uint32_t others = 0;
    pawl_status status = PAWL_OK;

    if (stores && str_starts(stores_url(stores), STR("sqlite:"))) {
        status = store_names_beside(scope, stores_url(stores), &names, &others);
    } else if (stores) {
        guard_lock(&stores->lock);
        status = names_in_memory(stores, scope, &names, &others);
        guard_unlock(&stores->lock);
    }
    all = status == PAWL_OK ? ARENA_ARRAY(&scope->arena, str, others + 1) : NULL;
    if (!all)
        return status != PAWL_OK ? status : scope_no_memory(scope);
    all[0] = STR(STORE_DEFAULT);
    if (others)
        memcpy(all + 1, names, sizeof *all * others);
    *out = all;
    *count = others + 1;
    return PAWL_OK;
}

pawl_status pawl_store(pawl *p, const char *name, pawl **out, pawl_error *error)
{
    struct scope scope;
    pawl_status status;

    TRY(API_NEED(error, GIVEN(p), GIVEN(name), GIVEN(out)));
    *out = NULL;
    if (p->first)
        p = p->first;
    api_enter(p, &scope);
    status = store_enter(p, &scope, str_of(name), out); /* for good: store_leave() is not called */
    if (status != PAWL_OK)
        *out = NULL;
    return api_leave(&scope, status, error);
}
