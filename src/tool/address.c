/* address.c - is this an address of our own house? What a name resolves to is looked at when the
 * connection is made, so that a name which changes its mind in between gains nothing. */
#include "tool/tool_int.h"
#include <netinet/in.h>

static bool is_private_v4(uint32_t address)
{
    static const struct {
        uint32_t network, bits;
    } ours[] = {
        { 0x00000000, 8 },  { 0x0a000000, 8 },  { 0x64400000, 10 }, { 0x7f000000, 8 },
        { 0xa9fe0000, 16 }, { 0xac100000, 12 }, { 0xc0000000, 24 }, { 0xc0a80000, 16 },
        { 0xc6120000, 15 }, { 0xe0000000, 4 },  { 0xf0000000, 4 },
    };

    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (address >> (32 - ours[i].bits) == ours[i].network >> (32 - ours[i].bits))
            return true;
    return false;
}

static uint32_t last_four(const uint8_t bytes[16])
{
    return (uint32_t)bytes[12] << 24 | (uint32_t)bytes[13] << 16 | (uint32_t)bytes[14] << 8 |
           bytes[15];
}

/* Loopback, unspecified, link-local, unique local, multicast; and IPv4 in its several dresses. */
static bool is_private_v6(const uint8_t bytes[16])
{
    static const uint8_t zeros[12], mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff },
                                    translated[12] = { 0, 0x64, 0xff, 0x9b };

    if (memcmp(bytes, zeros, 12) == 0 || memcmp(bytes, mapped, 12) == 0 ||
        memcmp(bytes, translated, 12) == 0)
        return last_four(bytes) <= 1 || is_private_v4(last_four(bytes));
    if (bytes[0] == 0x20 && bytes[1] == 0x02) /* 6to4 */
        return is_private_v4((uint32_t)bytes[2] << 24 | (uint32_t)bytes[3] << 16 |
                             (uint32_t)bytes[4] << 8 | bytes[5]);
    return (bytes[0] & 0xfe) == 0xfc || (bytes[0] == 0xfe && bytes[1] >= 0x80) || bytes[0] == 0xff;
}

bool address_is_private(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;

        memcpy(&v4, address, sizeof v4);
        return is_private_v4(ntohl(v4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;

        memcpy(&v6, address, sizeof v6);
        return is_private_v6(v6.sin6_addr.s6_addr);
    }
    return true; /* nothing else is an address to us */
}
