/* fuzz_head.c - the first bytes of a connection, as they arrive: what is bad stays bad whatever
 * follows, and what is no more than a beginning is not passed on. */
#include "fuzz.h"
#include "surface/http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum head_verdict before = HEAD_MORE, now;
    struct head_refusal refusal = { PAWL_OK, NULL };

    for (size_t arrived = 0; arrived <= size && arrived <= HEAD_LOOK; arrived++) {
        now = head_judge((str){ (const char *)data, arrived }, &refusal);
        REQUIRE(now != HEAD_BAD || (refusal.words && (refusal.status == PAWL_INVALID_REQUEST ||
                                                      refusal.status == PAWL_TOO_LARGE)));
        REQUIRE(before != HEAD_BAD || now == HEAD_BAD);
        REQUIRE(before != HEAD_SOUND || now != HEAD_MORE);
        REQUIRE(now != HEAD_MORE || arrived <= HEAD_MAX);
        before = now;
    }
    return 0;
}
