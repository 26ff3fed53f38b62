/* tunnel.h - a TLS connection that is used like a TCP connection. */
#ifndef PAWL_SURFACE_CLI_TUNNEL_H
#define PAWL_SURFACE_CLI_TUNNEL_H

/* Connect with TLS, through libcurl. Returns a socket: what is written to
 * it is sent encrypted, what is read from it was decrypted. Returns -1 on failure, with the reason
 * in *why (a static text).
 *
 * The certificate is not verified. So nothing secret may be written unless `host` is a loopback
 * address at which the caller knows who listens: no other machine can answer there, and no other
 * user's process can listen at a port that is in use. */
int tunnel_open(const char *host, const char *port, const char **why);

#endif
