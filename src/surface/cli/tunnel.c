/* tunnel.c - a thread carries bytes between a socket pair and libcurl's TLS connection. */
#include "surface/cli/tunnel.h"
#include "surface/cli/files.h"
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#define CONNECT_WAIT_S 5L

/* libcurl is loaded when it is needed, as for the http tool: a command that calls no TLS server
 * does without it. */
#define TLS_FUNCTIONS(X)                                                                           \
    X(init, "curl_easy_init", CURL *, (void))                                                      \
    X(setopt, "curl_easy_setopt", CURLcode, (CURL *, CURLoption, ...))                             \
    X(perform, "curl_easy_perform", CURLcode, (CURL *))                                            \
    X(getinfo, "curl_easy_getinfo", CURLcode, (CURL *, CURLINFO, ...))                             \
    X(send, "curl_easy_send", CURLcode, (CURL *, const void *, size_t, size_t *))                  \
    X(recv, "curl_easy_recv", CURLcode, (CURL *, void *, size_t, size_t *))                        \
    X(cleanup, "curl_easy_cleanup", void, (CURL *))                                                \
    X(strerror, "curl_easy_strerror", const char *, (CURLcode))

struct tls_api {
#define X(name, symbol, type, parameters) type(*name) parameters;
    TLS_FUNCTIONS(X)
#undef X
};

static bool load_api(struct tls_api *api)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL), *found;

    if (!library)
        return false;
#define X(name, symbol, type, parameters)                                                          \
    found = dlsym(library, symbol);                                                                \
    if (!found)                                                                                    \
        return false;                                                                              \
    memcpy(&api->name, &found, sizeof found);
    TLS_FUNCTIONS(X)
#undef X
    return true;
}

struct tunnel {
    struct tunnel *next;
    pthread_t thread;
    _Atomic bool is_over; /* the thread has nothing more to do */
    struct tls_api api;
    CURL *curl;
    curl_socket_t outer; /* libcurl's */
    int inner;           /* our end of the pair */
};

/* The tunnels whose threads have not been joined; a process that ends waits for them. */
static struct {
    pthread_mutex_t lock;
    struct tunnel *first;
    bool has_exit; /* end_all() is registered */
} tunnels = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool send_outer(struct tunnel *tunnel, const char *bytes, size_t size)
{
    struct pollfd ready[] = { { .fd = tunnel->outer, .events = POLLOUT }, { .fd = tunnel->inner } };
    size_t sent;
    CURLcode code;

    for (; size > 0; bytes += sent, size -= sent) {
        sent = 0;
        code = tunnel->api.send(tunnel->curl, bytes, size, &sent);
        if (code == CURLE_AGAIN)
            poll(ready, 2, -1);
        if (ready[1].revents)
            return false;
        if (code == CURLE_AGAIN)
            continue;
        if (code != CURLE_OK)
            return false;
    }
    return true;
}

/* Decrypted bytes may be buffered in the TLS library, where poll() does not see them: so all that
 * there are. False at the end of the connection. */
static bool carry_in(struct tunnel *tunnel)
{
    char block[16384];
    size_t size;
    CURLcode code;

    while ((code = tunnel->api.recv(tunnel->curl, block, sizeof block, &size)) == CURLE_OK)
        if (size == 0 || !write_whole(tunnel->inner, (str){ block, size }))
            return false;
    return code == CURLE_AGAIN;
}

static bool carry_out(struct tunnel *tunnel)
{
    char block[16384];
    ssize_t size = recv(tunnel->inner, block, sizeof block, 0);

    return size < 0 ? errno == EINTR : size > 0 && send_outer(tunnel, block, (size_t)size);
}

static void tunnel_free(struct tunnel *tunnel)
{
    if (tunnel->curl)
        tunnel->api.cleanup(tunnel->curl);
    if (tunnel->inner >= 0)
        close(tunnel->inner);
    free(tunnel);
}

static void *tunnel_thread(void *context)
{
    struct tunnel *tunnel = context;
    struct pollfd ready[] = { { .fd = tunnel->inner, .events = POLLIN },
                              { .fd = tunnel->outer, .events = POLLIN } };

    do {
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            break;
    } while ((!ready[0].revents || carry_out(tunnel)) && (!ready[1].revents || carry_in(tunnel)));
    shutdown(tunnel->inner, SHUT_RDWR);
    tunnel->is_over = true;
    return NULL;
}

/* Join the threads that are over; with `all`, end the others first. */
static void join_some(bool all)
{
    struct tunnel **at = &tunnels.first, *tunnel;

    pthread_mutex_lock(&tunnels.lock);
    while ((tunnel = *at)) {
        if (all)
            shutdown(tunnel->inner, SHUT_RDWR);
        if (!all && !tunnel->is_over) {
            at = &tunnel->next;
            continue;
        }
        *at = tunnel->next;
        pthread_join(tunnel->thread, NULL);
        tunnel_free(tunnel);
    }
    pthread_mutex_unlock(&tunnels.lock);
}

static void end_all(void)
{
    join_some(true);
}

static CURLcode connect_outer(struct tunnel *tunnel, const char *host, const char *port)
{
    const struct tls_api *api = &tunnel->api;
    char url[300];
    CURLcode code;

    snprintf(url, sizeof url, "https://%s:%s", host, port);
    api->setopt(tunnel->curl, CURLOPT_URL, url);
    api->setopt(tunnel->curl, CURLOPT_PROXY, "");
    api->setopt(tunnel->curl, CURLOPT_CONNECT_ONLY, 1L);
    api->setopt(tunnel->curl, CURLOPT_NOSIGNAL, 1L);
    api->setopt(tunnel->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_WAIT_S);
    api->setopt(tunnel->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    api->setopt(tunnel->curl, CURLOPT_SSL_VERIFYPEER, 0L);
    api->setopt(tunnel->curl, CURLOPT_SSL_VERIFYHOST, 0L);
    code = api->perform(tunnel->curl);
    if (code == CURLE_OK)
        code = api->getinfo(tunnel->curl, CURLINFO_ACTIVESOCKET, &tunnel->outer);
    return code;
}

static void remember(struct tunnel *tunnel)
{
    pthread_mutex_lock(&tunnels.lock);
    tunnel->next = tunnels.first;
    tunnels.first = tunnel;
    if (!tunnels.has_exit)
        tunnels.has_exit = atexit(end_all) == 0;
    pthread_mutex_unlock(&tunnels.lock);
}

/* The list owns the tunnel from then on. Returns the caller's end of the pair, or -1. */
static int start_thread(struct tunnel *tunnel)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    tunnel->inner = pair[0];
    errno = pthread_create(&tunnel->thread, NULL, tunnel_thread, tunnel);
    if (errno != 0) {
        close(pair[1]);
        return -1;
    }
    remember(tunnel);
    return pair[1];
}

static int open_with(struct tunnel *tunnel, const char *host, const char *port, const char **why)
{
    CURLcode code;
    int fd;

    if (!load_api(&tunnel->api) || !(tunnel->curl = tunnel->api.init())) {
        *why = "TLS needs libcurl (libcurl.so.4), which cannot be loaded";
        return -1;
    }
    code = connect_outer(tunnel, host, port);
    if (code != CURLE_OK) {
        *why = tunnel->api.strerror(code);
        return -1;
    }
    fd = start_thread(tunnel);
    if (fd < 0)
        *why = strerror(errno);
    return fd;
}

int tunnel_open(const char *host, const char *port, const char **why)
{
    struct tunnel *tunnel = calloc(1, sizeof *tunnel);
    int fd;

    if (!tunnel) {
        *why = "out of memory";
        return -1;
    }
    join_some(false);
    tunnel->inner = -1;
    fd = open_with(tunnel, host, port, why);
    if (fd < 0)
        tunnel_free(tunnel);
    return fd;
}
