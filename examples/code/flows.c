/* flows.c - the examples as a module:
 *
 *     cc -shared -fPIC -I include -o flows.so examples/code/flows.c
 *     pawl serve --module ./flows.so
 *
 * or, with -DPROGRAM and libpawl-main.a, as a program that is a full pawl. */
#include "auction.h"
#include "buff.h"
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

PAWL_MODULE(buff, counter, conditional, counting_down, auction, trade, damage, production, combat, patrol,
            quest, respawn, day_night);

#ifdef PROGRAM
int main(int argc, char **argv)
{
    return pawl_main(argc, argv, pawl_module_open());
}
#endif
