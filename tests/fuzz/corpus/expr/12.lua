);
}

/* What verify relies on: where a limit falls is the same every time, whatever else the process
 * has allocated meanwhile and however Lua has seeded its hashes. */
TEST(expr, the_same_text_meets_its_limit_at_the_same_place_every_time)
{
    bool at = false, first = false, over = false;
    char text[200];
    long low = 1, high = 100000;

    while (low + 1 < high) { /* the largest loop that is still allowed */
        long middle = (low + high) / 2;

        (void)snprintf(text, sizeof text,
                       