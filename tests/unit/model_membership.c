/* model_membership.c - the rules of nodes over a clock that is a parameter:
 * docs/internals/cluster.md has them by number. */
#include "lib/test.h"
#include "model/membership.h"
#include <stdio.h>

#define N 64u

static struct node_member members[NODES_MAX];
static char names[NODES_MAX][32];

static void make(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "node-%02u/%u", i, i * 7);
        members[i] = (struct node_member){ str_of(names[i]), true };
    }
}

static uint32_t count_of(const uint32_t *owners, uint32_t node)
{
    uint32_t count = 0;

    for (uint32_t s = 0; s < N; s++)
        count += owners[s] == node;
    return count;
}

static void free_all(uint32_t *owners)
{
    for (uint32_t s = 0; s < N; s++)
        owners[s] = SHARD_NO_NODE;
}

TEST(model_membership, each_shard_has_one_heir_and_no_node_has_more_than_its_part)
{
    uint32_t owners[N], heirs[N];

    for (uint32_t count = 1; count <= 9; count++) {
        make(count);
        free_all(owners);
        shards_assign(members, count, owners, true, heirs, N);
        for (uint32_t i = 0; i < count; i++)
            EXPECT(count_of(heirs, i) <= (N + count - 1) / count);
        EXPECT(count_of(heirs, SHARD_NO_NODE) == 0);
    }
}

TEST(model_membership, a_node_that_comes_takes_no_more_than_its_part_and_the_rest_stays)
{
    uint32_t owners[N], heirs[N], moved = 0;

    make(4);
    members[3].may_own = false;
    free_all(owners);
    shards_assign(members, 4, owners, true, heirs, N);
    memcpy(owners, heirs, sizeof owners);
    members[3].may_own = true;
    shards_assign(members, 4, owners, true, heirs, N);
    for (uint32_t s = 0; s < N; s++) {
        moved += heirs[s] != owners[s];
        EXPECT(heirs[s] == owners[s] || heirs[s] == 3);
    }
    EXPECT(moved > 0 && moved <= N / 4);
}

TEST(model_membership, what_a_dead_node_had_is_spread_and_nothing_else_moves)
{
    uint32_t owners[N], heirs[N];

    make(3);
    free_all(owners);
    shards_assign(members, 3, owners, true, owners, N);
    members[1].may_own = false;
    shards_assign(members, 3, owners, true, heirs, N);
    for (uint32_t s = 0; s < N; s++)
        EXPECT(owners[s] == 1 ? heirs[s] != 1 : heirs[s] == owners[s]);
    EXPECT(count_of(heirs, 0) > count_of(owners, 0) && count_of(heirs, 2) > count_of(owners, 2));
}

TEST(model_membership, without_spread_one_node_has_them_all_and_keeps_them)
{
    uint32_t owners[N], heirs[N];

    make(3);
    free_all(owners);
    owners[5] = 2;
    shards_assign(members, 3, owners, false, heirs, N);
    EXPECT(count_of(heirs, 2) == N);
    members[2].may_own = false;
    shards_assign(members, 3, owners, false, heirs, N);
    EXPECT(count_of(heirs, 2) == 0);
    EXPECT(count_of(heirs, 0) == N || count_of(heirs, 1) == N);
}

TEST(model_membership, without_any_node_no_shard_has_an_heir)
{
    uint32_t owners[N], heirs[N];

    make(1);
    members[0].may_own = false;
    free_all(owners);
    shards_assign(members, 1, owners, true, heirs, N);
    EXPECT(count_of(heirs, SHARD_NO_NODE) == N);
}

/* Rule 2: the lease is counted from when a beat was sent, not from when it was answered. */
TEST(model_membership, memory_is_trusted_for_four_fifths_of_a_lease_after_the_beat_was_sent)
{
    EXPECT(lease_holds(1000, 1000, 3000));
    EXPECT(lease_holds(1000, 3399, 3000));
    EXPECT(!lease_holds(1000, 3400, 3000));
    EXPECT(!lease_holds(0, 90000, 3000));
}

static enum shard_act act_of(struct shard_look look)
{
    return shard_decide(&look);
}

#define ACT(...) act_of((struct shard_look){ __VA_ARGS__ })

/* Rule 3. */
TEST(model_membership, a_live_owner_is_left_alone_and_a_silent_one_is_declared_dead_first)
{
    EXPECT(ACT(.has_owner = true, .is_owner_live = true, .am_heir = true) == SHARD_LEAVE);
    EXPECT(ACT(.has_owner = true, .is_owner_live = true, .free_ms = 60000) == SHARD_LEAVE);
    EXPECT(ACT(.has_owner = true, .am_heir = true) == SHARD_DECLARE);
    EXPECT(ACT(.am_heir = true) == SHARD_CLAIM);
}

TEST(model_membership, the_heir_claims_at_once_and_others_after_a_while)
{
    EXPECT(ACT(.free_ms = CLAIM_LATE_MS - 1) == SHARD_LEAVE);
    EXPECT(ACT(.free_ms = CLAIM_LATE_MS) == SHARD_CLAIM);
    EXPECT(ACT(.has_owner = true, .free_ms = CLAIM_LATE_MS) == SHARD_DECLARE);
}

TEST(model_membership, what_another_should_have_is_handed_over_when_nodes_have_stopped_coming_and_going)
{
    EXPECT(ACT(.is_mine = true, .am_heir = true, .calm_ms = 9000, .calm_after_ms = 9000) ==
           SHARD_LEAVE);
    EXPECT(ACT(.is_mine = true, .calm_ms = 8999, .calm_after_ms = 9000) == SHARD_LEAVE);
    EXPECT(ACT(.is_mine = true, .calm_ms = 9000, .calm_after_ms = 9000) == SHARD_HAND_OVER);
}

TEST(model_membership, a_node_that_leaves_hands_over_at_once_and_claims_nothing)
{
    EXPECT(ACT(.is_mine = true, .am_heir = true, .is_leaving = true) == SHARD_HAND_OVER);
    EXPECT(ACT(.am_heir = true, .is_leaving = true, .free_ms = 60000) == SHARD_LEAVE);
}

TEST(model_membership, a_clock_is_compared_with_the_middle_of_the_question)
{
    int64_t by_ms = -1;

    EXPECT(clock_difference(1000, 1100, 1350, &by_ms));
    EXPECT(by_ms == 300);
    EXPECT(clock_difference(5000, 5010, 4005, &by_ms));
    EXPECT(by_ms == -1000);
    EXPECT(!clock_difference(1000, 2000, 1500, &by_ms)); /* too slow an answer to say */
    EXPECT(!clock_difference(1000, 900, 1000, &by_ms));  /* the clock was set meanwhile */
}

TEST(model_membership, a_clock_is_corrected_at_once_before_it_counts_and_slowly_afterwards)
{
    EXPECT(clock_correction(0, 70000, 4, true) == 70000);
    EXPECT(clock_correction(70000, -60, 4, false) == 69940);
    EXPECT(clock_correction(70000, 900, 4, false) == 70100); /* no jump */
    EXPECT(clock_correction(70000, -900, 4, false) == 69900);
    EXPECT(clock_correction(70000, 5000, 4, false) == 75000); /* the machine's clock has jumped */
    EXPECT(clock_correction(70000, 20, 40, false) == 70000);  /* the way of the answer */
    EXPECT(clock_correction(0, 2, 0, true) == 0);
}
