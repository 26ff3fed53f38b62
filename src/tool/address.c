/* address.c - may this address be called? Only if it is reachable from everywhere: addresses in the
 * IANA registries for special use (RFC 6890) are rejected. A name is resolved, and its address
 * checked, when the connection is made, so that a name which changes in between gains nothing. */
#include "tool/tool_int.h"
#include <netinet/in.h>

static bool is_private_v4(uint32_t address)
{
    static const struct {
        uint32_t network, bits;
    } ours[] = {
        { 0x00000000, 8 },  /* "this network" */
        { 0x0a000000, 8 },  /* private */
        { 0x64400000, 10 }, /* shared address space of providers */
        { 0x7f000000, 8 },  /* loopback */
        { 0xa9fe0000, 16 }, /* link-local */
        { 0xac100000, 12 }, /* private */
        { 0xc0000000, 24 }, /* protocol assignments */
        { 0xc0000200, 24 }, /* documentation: 192.0.2.0 */
        { 0xc0586300, 24 }, /* relays of 6to4, deprecated: 192.88.99.0 */
        { 0xc0a80000, 16 }, /* private */
        { 0xc6120000, 15 }, /* benchmarks */
        { 0xc6336400, 24 }, /* documentation: 198.51.100.0 */
        { 0xcb007100, 24 }, /* documentation: 203.0.113.0 */
        { 0xe0000000, 4 },  /* multicast */
        { 0xf0000000, 4 },  /* reserved, and broadcast */
    };

    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (address >> (32 - ours[i].bits) == ours[i].network >> (32 - ours[i].bits))
            return true;
    return false;
}

static uint32_t four_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* An IPv4 address inside an IPv6 one is checked by itself. Everything outside of 2000::/3 is
 * loopback, local, multicast, discarded or unassigned; parts of that are reserved. */
static bool is_private_v6(const uint8_t bytes[16])
{
    static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff },
                         translated[12] = { 0, 0x64, 0xff, 0x9b };
    uint32_t first = four_at(bytes);

    if (memcmp(bytes, mapped, 12) == 0 || memcmp(bytes, translated, 12) == 0)
        return is_private_v4(four_at(bytes + 12));
    if (first >> 16 == 0x2002) /* 6to4 */
        return is_private_v4(four_at(bytes + 2));
    return first >> 29 != 1 ||
           first >> 9 == 0x20010000 >> 9 || /* 2001::/23: Teredo, benchmarks, ORCHID, ... */
           first == 0x20010db8 ||           /* documentation */
           first >> 12 == 0x3fff0000 >> 12; /* documentation: 3fff::/20 */
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
