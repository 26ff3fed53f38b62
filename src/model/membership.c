/* membership.c - see membership.h. */
#include "model/membership.h"
#include "base/assert.h"

#define ANSWER_MAX_MS 500 /* half of it is what the difference may be wrong by */

bool lease_holds(int64_t sent_ms, int64_t now_ms, int32_t ttl_ms)
{
    return now_ms - sent_ms < (int64_t)ttl_ms * 8 / 10;
}

/* FNV-1a of both, and then every bit mixed with every other. */
uint64_t shard_weight(str node, uint32_t shard)
{
    uint64_t weight = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < node.size; i++)
        weight = (weight ^ (unsigned char)node.data[i]) * UINT64_C(0x100000001b3);
    for (uint32_t i = 0; i < 4; i++)
        weight = (weight ^ (shard >> i * 8 & 0xff)) * UINT64_C(0x100000001b3);
    weight = (weight ^ weight >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    weight = (weight ^ weight >> 27) * UINT64_C(0x94d049bb133111eb);
    return weight ^ weight >> 31;
}

static uint32_t heir_of(const struct node_member *members, uint32_t count, const uint32_t *held,
                        uint32_t most, uint32_t shard)
{
    uint32_t best = SHARD_NO_NODE;
    uint64_t best_weight = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t weight = shard_weight(members[i].node, shard);

        if (!members[i].may_own || held[i] >= most ||
            (best != SHARD_NO_NODE && weight <= best_weight))
            continue;
        best = i;
        best_weight = weight;
    }
    return best;
}

static void assign_together(const struct node_member *members, uint32_t member_count,
                            const uint32_t *owners, uint32_t *out, uint32_t shards)
{
    const uint32_t none[NODES_MAX] = { 0 };
    uint32_t one = SHARD_NO_NODE;

    for (uint32_t s = 0; s < shards && one == SHARD_NO_NODE; s++)
        if (owners[s] != SHARD_NO_NODE && members[owners[s]].may_own)
            one = owners[s];
    if (one == SHARD_NO_NODE)
        one = heir_of(members, member_count, none, 1, 0);
    for (uint32_t s = 0; s < shards; s++)
        out[s] = one;
}

void shards_assign(const struct node_member *members, uint32_t member_count, const uint32_t *owners,
                   bool spread, uint32_t *out, uint32_t shards)
{
    uint32_t held[NODES_MAX] = { 0 }, able = 0, most;

    ASSERT(member_count <= NODES_MAX);
    if (!spread) {
        assign_together(members, member_count, owners, out, shards);
        return;
    }
    for (uint32_t i = 0; i < member_count; i++)
        able += members[i].may_own;
    most = able > 0 ? (shards + able - 1) / able : 0;
    for (uint32_t s = 0; s < shards; s++) {
        uint32_t owner = owners[s];

        out[s] = SHARD_NO_NODE;
        if (owner == SHARD_NO_NODE || !members[owner].may_own || held[owner] >= most)
            continue;
        out[s] = owner;
        held[owner]++;
    }
    for (uint32_t s = 0; s < shards; s++) {
        if (out[s] != SHARD_NO_NODE)
            continue;
        out[s] = heir_of(members, member_count, held, most, s);
        if (out[s] != SHARD_NO_NODE)
            held[out[s]]++;
    }
}

enum shard_act shard_decide(const struct shard_look *look)
{
    if (look->is_mine)
        return look->is_leaving || (!look->am_heir && look->calm_ms >= look->calm_after_ms)
                   ? SHARD_HAND_OVER
                   : SHARD_LEAVE;
    if (look->is_leaving || (look->has_owner && look->is_owner_live))
        return SHARD_LEAVE;
    if (!look->am_heir && look->free_ms < CLAIM_LATE_MS)
        return SHARD_LEAVE;
    return look->has_owner ? SHARD_DECLARE : SHARD_CLAIM;
}

bool clock_difference(int64_t sent_ms, int64_t answered_ms, int64_t database_ms, int64_t *out)
{
    if (answered_ms < sent_ms || answered_ms - sent_ms > ANSWER_MAX_MS)
        return false;
    *out = database_ms - (sent_ms + (answered_ms - sent_ms) / 2);
    return true;
}

#define CORRECTED_MS 100  /* by a beat */
#define JUMPED_MS    1000 /* at once: as much is a jump of the machine's clock */

int64_t clock_correction(int64_t by_ms, int64_t left_ms, int64_t answer_ms, bool is_first)
{
    int64_t size_ms = left_ms < 0 ? -left_ms : left_ms;

    if (size_ms <= answer_ms / 2 + 2)
        return by_ms;
    if (is_first || size_ms > JUMPED_MS)
        return by_ms + left_ms;
    if (size_ms > CORRECTED_MS)
        left_ms = left_ms < 0 ? -CORRECTED_MS : CORRECTED_MS;
    return by_ms + left_ms;
}
