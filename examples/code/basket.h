/* basket.h - steps side by side: every line is priced at once, then the whole is charged; the
 * same commit starts another instance and signals the one that asked. */
#include <pawl_code.h>
#include <string.h>

#define BASKET_LINE(has) has(required, text, sku, 24) has(uint32_t, count)

PAWL_STRUCT(basket_line, BASKET_LINE);

#define BASKET_CHARGE(has) has(text, customer, 64) has(int64_t, cents)
PAWL_STRUCT(basket_charge, BASKET_CHARGE);

#define BASKET(has)                                                                                \
    has(input, text, customer, 64) has(input, parts, lines, basket_line, 20)                       \
        has(input, text, tell, 27) /* the instance to signal, if any */                            \
        has(var, part, due, basket_charge) has(var, uint32_t, missing) has(call, price, int64_t)   \
            has(call, charge) has(result, int64_t, sum) has(result, uint32_t, missing)             \
                has(await, pricing) has(await, charging)

PAWL_CODE(basket, BASKET)
{
    PAWL_BEGIN(BASKET);
    PAWL_GATHER(pricing)
    {
        for (uint32_t i = 0; i < self->lines_count; i++)
            PAWL_GATHER_CALL(price, PAWL_JSON(basket_line, &self->lines[i]));
    }
    PAWL_EACH
    {
        if (PAWL_ERROR)
            self->missing++;
        else
            self->due.cents += got->price * self->lines[PAWL_WHICH].count;
    }
    PAWL_GATHERED;
    if (self->due.cents > 0) {
        memcpy(self->due.customer, self->customer, sizeof self->due.customer);
        PAWL_START("parcel", pawl_turn_text(turn, "{\"cents\":%lld}", (long long)self->due.cents));
        PAWL_CALL(charging, charge, PAWL_JSON(basket_charge, &self->due));
    }
    if (self->tell[0])
        PAWL_SEND(self->tell, "charged", pawl_turn_text(turn, "%lld", (long long)self->due.cents));
    result->sum = self->due.cents;
    result->missing = self->missing;
    PAWL_END;
}

/* What is started: it waits to be fetched. */
#define PARCEL(has) has(input, int64_t, cents) has(signal, Fetched) has(await, ready)

PAWL_CODE(parcel, PARCEL)
{
    PAWL_BEGIN(PARCEL);
    PAWL_SIGNAL(ready, Fetched);
    PAWL_END;
}
