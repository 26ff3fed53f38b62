/* accept_head.c - an operator accepts the log of a store as it is now. */
#include "api/rebuild.h"
#include "base/limits.h"
#include "env/env.h"
#include "store/store.h"

static void print_found(const struct head_witness *witness, struct buf *out)
{
    char words[256];

    witness_words(witness, words, sizeof words);
    json_open(out, '{');
    json_key(out, "accepted");
    json_bool(out, witness_is_against(witness));
    json_key(out, "position");
    json_u64(out, witness->log_pos);
    json_key(out, "what");
    json_text(out, words);
    json_close(out, '}');
}

static pawl_status accept_found(struct store *store, struct scope *scope, str who, struct buf *out)
{
    struct head_witness witness;
    pawl_status status = store_witness(store, scope, &witness);

    if (status == PAWL_OK && witness_is_against(&witness))
        status = store_accept(store, scope, who);
    if (status == PAWL_OK)
        print_found(&witness, out);
    return status;
}

pawl_status accept_head(const char *url, str who, struct buf *out, pawl_error *error)
{
    struct env *env = env_os_new(&heap_libc);
    struct store_options open = { .own = true, .env = env, .heap = &heap_libc };
    struct store *store = NULL;
    struct scope scope;
    pawl_status status;

    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    status = env ? store_open(str_of(url), &open, &scope, &store) : scope_no_memory(&scope);
    if (status == PAWL_OK)
        status = accept_found(store, &scope, who, out);
    store_close(store);
    if (env)
        env->close(env);
    if (status != PAWL_OK)
        *error = scope.error;
    scope_fini(&scope);
    return status;
}
