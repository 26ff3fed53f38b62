/* accept_head.c - an operator accepts the log of a store as it is now. */
#include "repair/owned.h"
#include "repair/repair.h"

static pawl_status accept_found(struct store *store, struct scope *scope, str who, struct buf *out)
{
    struct head_witness witness;
    char words[256];

    TRY(store_witness(store, scope, who, &witness));
    witness_words(&witness, words, sizeof words);
    json_open(out, '{');
    json_put_bool(out, "accepted", witness_is_against(&witness));
    json_put_u64(out, "position", witness.log_pos);
    json_put_text(out, "what", words);
    json_close(out, '}');
    return PAWL_OK;
}

pawl_status accept_head(const char *url, str who, struct buf *out, pawl_error *error)
{
    struct owned owned;
    pawl_status status = owned_open(&owned, url);

    if (status == PAWL_OK)
        status = accept_found(owned.store, &owned.scope, who, out);
    return owned_close(&owned, status, error);
}
