/* auction.h - a bid near the end extends the auction; a bid that is too low is ignored. */
#include <pawl_code.h>
#include <string.h>

#define BID(has) has(text, bidder, 32) has(uint64_t, cents)
PAWL_STRUCT(bid, BID);

#define AUCTION(has)                                                                               \
    has(input, text, item, 64, "a lamp")                                                           \
    has(input, uint64_t, reserve_cents, 1000)                                                      \
    has(input, uint32_t, hours, 48)                                                                \
    has(var, part, best, bid)                                                                      \
    has(var, parts, bids, bid, 16)                                                                 \
    has(timer, Close)                                                                              \
    has(timer, GoingOnce)                                                                          \
    has(signal, Bid, part, bid)                                                                    \
    has(signal, Withdraw)                                                                          \
    has(result, bool, sold)                                                                        \
    has(result, part, best, bid)                                                                   \
    has(await, open)                                                                               \
    has(await, closing)

static bool auction_hear(struct bid *best, const struct bid *offer)
{
    if (offer->cents <= best->cents)
        return false;
    *best = *offer;
    return true;
}

PAWL_CODE(auction, AUCTION)
{
    PAWL_BEGIN(AUCTION);
    PAWL_SELECT(open) {
        PAWL_ON_TIMER(Close, PAWL_HOURS(self->hours)) {
            PAWL_DONE; /* no bids */
        }
        PAWL_ON_SIGNAL(Withdraw) PAWL_FAIL("%s was withdrawn", self->item);
        PAWL_ON_SIGNAL(Bid) (void)auction_hear(&self->best, &got->Bid);
    } PAWL_AWAIT;
    for (;;) { /* from the first bid on: an hour of silence ends it */
        PAWL_SELECT(closing) {
            PAWL_ON_TIMER(GoingOnce, PAWL_HOURS(1)) break;
            PAWL_ON_SIGNAL(Withdraw) PAWL_FAIL("%s was withdrawn", self->item);
            PAWL_ON_SIGNAL(Bid) {
                if (auction_hear(&self->best, &got->Bid) && self->bids_count < 16)
                    self->bids[self->bids_count++] = got->Bid;
                continue;
            }
        } PAWL_AWAIT;
    }
    result->sold = self->best.cents >= self->reserve_cents;
    result->best = self->best;
    PAWL_END;
}
