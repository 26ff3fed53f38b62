/* redact.h - a URL as people may see it: without the password in it. */
#ifndef PAWL_BASE_REDACT_H
#define PAWL_BASE_REDACT_H

#include "base/arena.h"

#define REDACTED "***"

/* A copy of the URL, whose password (behind USER:, or of a parameter `password` or
 * `sslpassword`) is ***. Data NULL: no memory. */
str url_redact(struct arena *arena, str url);
/* The same over the text itself: each byte of the password is replaced by an x. */
void url_blank(char *url);

#endif
