/* checkout.h - a card is charged once, however often the call is tried: all attempts have one
 * idempotency key. If the goods cannot be sent, the money goes back, by a loop that keeps its key
 * as well. */
#include <pawl_code.h>
#include <stdio.h>

#define CHECKOUT(has)                                                                              \
    has(required, uint64_t, cents)                                                                 \
    has(var, text, problem, 120)                                                                   \
    has(var, uint32_t, refunds)                                                                    \
    has(timer, Rest)                                                                               \
    has(call, charge_card)                                                                         \
    has(retry, charge_card, 5, PAWL_SECS(1), PAWL_SECS(60))                                        \
    has(no_retry, charge_card, "card-declined")                                                    \
    has(call, send_goods)                                                                          \
    has(call, refund_card)                                                                         \
    has(result, bool, sent)                                                                        \
    has(result, text, problem, 120)                                                                \
    has(await, charging)                                                                           \
    has(await, sending)                                                                            \
    has(await, refunding)                                                                          \
    has(await, resting)

PAWL_CODE(checkout, CHECKOUT)
{
    PAWL_BEGIN(CHECKOUT);
    PAWL_CALL(charging, charge_card,
              pawl_turn_text(turn, "{\"cents\":%llu}", (unsigned long long)self->cents));
    PAWL_TRY_CALL(sending, send_goods, "{}");
    result->sent = !PAWL_ERROR;
    if (PAWL_ERROR) {
        snprintf(self->problem, sizeof self->problem, "%s", PAWL_ERROR);
        for (;;) { /* money that is owed is not given up after five attempts */
            PAWL_TRY_CALL_KEYED(refunding, refund_card, "refund", "{}");
            if (!PAWL_ERROR)
                break;
            self->refunds++;
            PAWL_TIMER(resting, Rest, PAWL_MINUTES(10));
        }
    }
    snprintf(result->problem, sizeof result->problem, "%s", self->problem);
    PAWL_END;
}
