/* number.h - doubles as JSON and back, bit for bit, whatever locale the host has set. */
#ifndef PAWL_BASE_NUMBER_H
#define PAWL_BASE_NUMBER_H

#include "base/buf.h"

bool number_read_double(str text, double *out);
/* The fewest digits that read back the same; a whole number has no fraction. */
void number_print_double(double value, bool is_float, struct buf *out);

#endif
