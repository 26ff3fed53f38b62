/* decimal.h - numbers of JSON compared as they are written: exact, and the same in any locale. */
#ifndef PAWL_MODEL_DECIMAL_H
#define PAWL_MODEL_DECIMAL_H

#include "base/str.h"

/* Both are numbers of JSON. Negative, 0 or positive, as str_compare(); 1, 1.0 and 10e-1 are
 * equal. */
int decimal_compare(str a, str b);

/* Has it no fraction? 1.0 and 1e3 have none. */
bool decimal_is_whole(str number);

#endif
