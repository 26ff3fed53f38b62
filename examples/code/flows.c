/* flows.c - the examples as a module:
 *
 *     cc -O2 -Wall -shared -fPIC -I include -o flows.so examples/code/flows.c
 *     pawl serve --module ./flows.so
 *
 * or, with -DPROGRAM and libpawl-main.a, as a program that is a full pawl and brings the rows of
 * its own that combat changes: pawl sql 'select * from damage'. */
#include "auction.h"
#include "basket.h"
#include "buff.h"
#include "checkout.h"
#include "combat.h"
#include "conditional.h"
#include "countdown.h"
#include "counter.h"
#include "damage.h"
#include "day_night.h"
#include "patrol.h"
#include "production.h"
#include "quest.h"
#include "respawn.h"
#include "trade.h"
#include <pawl_main.h>

PAWL_MODULE(buff, counter, conditional, counting_down, auction, trade, damage, production, combat,
            patrol, quest, respawn, day_night, checkout, basket, parcel);

#ifdef PROGRAM
#include <sqlite3.h>

/* {"target":7,"damage":50}, in the transaction of its turn: both commit, or neither. */
static bool apply_damage(void *context, struct sqlite3 *db, const char *args, char *words, size_t size)
{
    char *sql = sqlite3_mprintf("CREATE TABLE IF NOT EXISTS damage (target, damage);"
                                "INSERT INTO damage SELECT %Q ->> '$.target', %Q ->> '$.damage'",
                                args, args);
    bool done = !db || sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK; /* no rows in memory */

    (void)context;
    if (!done)
        sqlite3_snprintf((int)size, words, "no damage done: %s", sqlite3_errmsg(db));
    sqlite3_free(sql);
    return done;
}

static pawl_status opened(void *context, pawl *p, pawl_error *error)
{
    return pawl_reduce_register(p, "apply_damage", apply_damage, context, error);
}

int main(int argc, char **argv)
{
    return pawl_main_with(argc, argv, pawl_module_open(), opened, NULL);
}
#endif
