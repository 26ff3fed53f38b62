/* ticker.c - the same code as a module: its turns are taken in a process of its own. */
#include "ticker.h"
#include <pawl_main.h>

PAWL_MODULE(ticker);
