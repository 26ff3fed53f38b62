/* trade.h - both sides accept within five minutes, then another system moves the goods. */
#include <pawl_code.h>

#define TRADE(has)                                                                                 \
    has(input, uint64_t, buyer)                                                                    \
    has(input, uint64_t, seller)                                                                   \
    has(var, bool, buyer_accepts)                                                                  \
    has(var, bool, seller_accepts)                                                                 \
    has(timer, Timeout)                                                                            \
    has(signal, Accept, uint64_t)                                                                  \
    has(signal, Decline, uint64_t)                                                                 \
    has(external, transfer_goods, uint64_t)                                                        \
    has(result, uint64_t, receipt)                                                                 \
    has(await, offered)                                                                            \
    has(await, moving)

PAWL_CODE(trade, TRADE)
{
    PAWL_BEGIN(TRADE);
    while (!self->buyer_accepts || !self->seller_accepts) {
        PAWL_SELECT(offered) {
            PAWL_ON_TIMER(Timeout, PAWL_MINUTES(5)) PAWL_FAIL("no reply for five minutes");
            PAWL_ON_SIGNAL(Decline) PAWL_FAIL("%llu declined", (unsigned long long)got->Decline);
            PAWL_ON_SIGNAL(Accept) {
                self->buyer_accepts = self->buyer_accepts || got->Accept == self->buyer;
                self->seller_accepts = self->seller_accepts || got->Accept == self->seller;
            }
        } PAWL_AWAIT;
    }
    PAWL_EXTERNAL(moving, transfer_goods,
                  pawl_turn_text(turn, "{\"from\":%llu,\"to\":%llu}",
                                 (unsigned long long)self->seller, (unsigned long long)self->buyer));
    result->receipt = got->transfer_goods;
    PAWL_END;
}
