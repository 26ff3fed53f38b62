/* redact.c - see redact.h. */
#include "base/redact.h"
#include "base/buf.h"

/* The password behind "SCHEME://USER:": up to the last @ before the path. */
static str find_login(str url)
{
    const char *begin = memmem(url.data, url.size, "://", 3), *end, *at = NULL, *colon = NULL;

    if (!begin)
        return STR_NONE;
    begin += 3;
    end = url.data + url.size;
    for (const char *p = begin; p < end && *p != '?' && *p != '#'; p++) {
        if (*p == '/' && at)
            break; /* a password may have a slash in it, if it is not escaped */
        if (*p == '@')
            at = p;
    }
    for (const char *p = begin; at && p < at && !colon; p++)
        colon = *p == ':' ? p : NULL;
    return colon ? (str){ colon + 1, (size_t)(at - colon - 1) } : STR_NONE;
}

/* The value of the next parameter that is a secret, from `from` on. */
static str find_parameter(str url, size_t from)
{
    static const str names[] = { STR_INIT("password="), STR_INIT("sslpassword=") };

    for (size_t i = from; i < url.size; i++)
        for (int n = 0; n < 2 && i > 0 && (url.data[i - 1] == '?' || url.data[i - 1] == '&'); n++)
            if (str_starts(str_from(url, i), names[n])) {
                str value = str_from(url, i + names[n].size);

                for (size_t end = 0; end < value.size; end++)
                    if (value.data[end] == '&' || value.data[end] == '#')
                        value.size = end;
                return value;
            }
    return STR_NONE;
}

/* The next secret of the URL from `from` on; data NULL: none. */
static str next_secret(str url, size_t from)
{
    str login = from == 0 ? find_login(url) : STR_NONE;

    return login.data ? login : find_parameter(url, from);
}

str url_redact(struct arena *arena, str url)
{
    size_t from = 0;
    struct buf out;

    buf_init(&out, arena->heap, url.size + 256);
    for (str secret; (secret = next_secret(url, from)).data;) {
        size_t begin = (size_t)(secret.data - url.data);

        buf_str(&out, (str){ url.data + from, begin - from });
        buf_str(&out, STR(REDACTED));
        from = begin + secret.size;
        if (from == 0)
            break;
    }
    buf_str(&out, str_from(url, from));
    return buf_take(&out, arena);
}

void url_blank(char *url)
{
    str text = str_of(url);
    size_t from = 0;

    for (str secret; text.data && (secret = next_secret(text, from)).data;) {
        memset(url + (secret.data - text.data), 'x', secret.size);
        from = (size_t)(secret.data - text.data) + secret.size;
    }
}
