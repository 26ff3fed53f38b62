/* bad.c - a module whose code does what code should not: it crashes, or never comes back. */
#include <pawl_code.h>
#include <pawl_main.h>
#include <stdio.h>
#include <stdlib.h>

static void touch(const char *name)
{
    FILE *file = fopen(name, "w");

    if (file)
        fclose(file);
}

static bool is_there(const char *name)
{
    FILE *file = fopen(name, "r");

    if (file)
        fclose(file);
    return file != NULL;
}

#define BAD(has)                                                                                   \
    has(input, bool, at_once)                                                                      \
    has(var, uint32_t, calm)                                                                       \
    has(timer, Tick)                                                                               \
    has(signal, Crash)                                                                             \
    has(signal, Spin)                                                                              \
    has(signal, Leave)                                                                             \
    has(signal, Sit)                                                                               \
    has(signal, Hold)                                                                              \
    has(result, uint32_t, calm)                                                                    \
    has(await, here)

PAWL_CODE(bad, BAD)
{
    PAWL_BEGIN(BAD);
    printf("the code may print what it likes\n");
    fflush(stdout);
    if (self->at_once)
        abort();
    for (;;) {
        PAWL_SELECT(here) {
            PAWL_ON_TIMER(Tick, PAWL_HOURS(1)) self->calm++;
            PAWL_ON_SIGNAL(Crash) {
                if (!getenv("PAWL_TEST_HEALED"))
                    abort();
                break;
            }
            PAWL_ON_SIGNAL(Spin) {
                for (volatile int spinning = 1; spinning;) {
                }
            }
            PAWL_ON_SIGNAL(Leave) exit(3);
            PAWL_ON_SIGNAL(Sit) self->calm++;
            PAWL_ON_SIGNAL(Hold) {
                touch("held");
                while (!is_there("gate")) { /* until the test opens it */
                }
            }
        } PAWL_AWAIT;
    }
    result->calm = self->calm;
    PAWL_END;
}

#define TICKS(has)                                                                                 \
    has(input, uint32_t, most) has(input, uint32_t, crash_at) has(var, uint32_t, n)                \
        has(timer, Tick) has(timer, Far) has(signal, Add, uint32_t) has(result, uint32_t, n)       \
            has(await, ticking)

/* Not healed, it cannot bear the tick of that number. */
PAWL_CODE(ticks, TICKS)
{
    PAWL_BEGIN(TICKS);
    while (self->n < self->most) {
        PAWL_SELECT(ticking)
        {
            PAWL_ON_TIMER(Far, PAWL_DAYS(9))
            {
            }
            PAWL_ON_TIMER(Tick, PAWL_SECS(1))
            {
                if (++self->n == self->crash_at && !getenv("PAWL_TEST_HEALED"))
                    abort();
            }
            PAWL_ON_SIGNAL(Add) self->n += got->Add;
        }
        PAWL_AWAIT;
    }
    result->n = self->n;
    PAWL_END;
}

#define ASKER(has) has(external, ask, int64_t) has(result, int64_t, answer) has(await, asked)

/* Not healed, it cannot bear an answer. */
PAWL_CODE(asker, ASKER)
{
    PAWL_BEGIN(ASKER);
    PAWL_EXTERNAL(asked, ask, "1");
    if (!getenv("PAWL_TEST_HEALED"))
        abort();
    result->answer = got->ask;
    PAWL_END;
}

#define SLIP(has) has(timer, Tick) has(signal, Go) has(var, int64_t, n) has(result, int64_t, n) has(await, here)

/* Not healed, it prints its result as no JSON is. */
PAWL_CODE(slip, SLIP)
{
    PAWL_BEGIN(SLIP);
    PAWL_SELECT(here) {
        PAWL_ON_TIMER(Tick, PAWL_SECS(1)) self->n = 1;
        PAWL_ON_SIGNAL(Go) self->n = 2;
    } PAWL_AWAIT;
    if (!getenv("PAWL_TEST_HEALED")) {
        pawl_turn_complete(turn, "{oops");
        return;
    }
    result->n = self->n;
    PAWL_END;
}

#ifdef OLD
const pawl_module *pawl_module_open(void)
{
    static const pawl_code_fn types[] = { bad, NULL };
    static const pawl_module module = { 99, sizeof(pawl_code_type), sizeof(pawl_var), "7.0", types };

    return &module;
}
#else
PAWL_MODULE(bad, asker, slip, ticks);
#endif
