/* decimal.h - numbers of JSON compared as they are written: exact, and the same in any locale. */
#ifndef PAWL_MODEL_DECIMAL_H
#define PAWL_MODEL_DECIMAL_H

#include "base/buf.h"

/* Both are numbers of JSON. Negative, 0 or positive, as str_compare(); 1, 1.0 and 10e-1 are
 * equal. */
int decimal_compare(str a, str b);

/* The same text for all that are equal: 7, 0.5, 1e-7; digits without needless zeros, with an
 * exponent if it is 10^21 or more, or below 10^-6. */
void decimal_print(str number, struct buf *out);

/* Has it no fraction? 1.0 and 1e3 have none. */
bool decimal_is_whole(str number);

#endif
