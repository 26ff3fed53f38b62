/* accept_head.c - an operator accepts the log of a store as it is now. */
#include "repair/owned.h"
#include "repair/repair.h"

/* Each shard has a FILE-head of its own. The report is about the first that differs, or about the
 * first. */
static pawl_status accept_found(struct owned *owned, str who, struct buf *out)
{
    struct head_witness witness, found = { 0 };
    uint32_t shard = 0, accepted = 0;
    char words[256];

    for (uint32_t i = 0; i < owned->count; i++) {
        TRY(store_witness(owned->shards[i], &owned->scope, who, &witness));
        if (i == 0 || (witness_is_against(&witness) && accepted == 0)) {
            found = witness;
            shard = i;
        }
        accepted += witness_is_against(&witness);
    }
    witness_words(&found, words, sizeof words);
    json_open(out, '{');
    json_put_bool(out, "accepted", accepted > 0);
    json_put_u64(out, "position", found.log_pos);
    json_put_text(out, "what", words);
    if (owned->count > 1 && accepted > 0) {
        json_put_u64(out, "shard", shard);
        json_put_u64(out, "shards", accepted);
    }
    json_close(out, '}');
    return PAWL_OK;
}

pawl_status accept_head(const char *url, str who, struct buf *out, pawl_error *error)
{
    struct owned owned;
    pawl_status status = owned_open(&owned, url);

    if (status == PAWL_OK)
        status = accept_found(&owned, who, out);
    return owned_close(&owned, status, error);
}
