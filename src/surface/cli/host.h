/* host.h - private to the command line: this process as the owner of a store, with workers,
 * reachable over HTTP so that other commands beside it go through it. */
#ifndef PAWL_SURFACE_CLI_HOST_H
#define PAWL_SURFACE_CLI_HOST_H

#include "api/world.h"
#include "surface/cli/cli.h"
#include <signal.h>

#define HOST_WORKERS 4

struct http_server;
struct mcp_server;

struct host_options {
    const char *listen; /* "HOST:PORT"; port 0: any free one */
    int socket;         /* one that listens already, instead; 0: none */
    bool test_clock, allow_exec;
    bool joins;            /* as one of the nodes that serve a store in PostgreSQL together */
    const char *advertise; /* where the others reach it; NULL: where it listens */
    bool reloads;     /* SIGHUP has the modules loaded again, instead of ending the process */
    bool needs_token; /* every call needs a token, or the secret that is written beside the store */
    const char *hosts, *tls_cert, *tls_key; /* as in http_options */
    const char *tools, *retention;          /* as in pawl_options */
    uint32_t workers;                       /* 0: HOST_WORKERS */
    uint64_t body_memory;                   /* as in http_options */
    uint32_t max_entries, max_live_steps, shards; /* as in pawl_options */
    bool mcp_fixtures;                      /* as in mcp_options, and the next two */
    const char *mcp_tools, *actor;
    const char *log_format; /* "logfmt" or "json": a line for each request on stderr; NULL: none */
};

struct host {
    struct http_server *server; /* NULL: another process owns the store, and we go through it */
    struct mcp_server *mcp;
    const struct op *mounts[3]; /* what other surfaces have there */
    char address[128];          /* "http://HOST:PORT" */
    char secret[WORLD_SECRET_SIZE]; /* with needs_token */
    sigset_t stop_signals;      /* held back, for host_wait() */
    pawl *reloaded;             /* at SIGHUP */
    bool has_terminal;          /* whose end is a SIGHUP too, and ends the process */
};

/* Own cli->store, or connect to its owner. INVALID_REQUEST (listen), IN_USE (the port, or
 * an owner that cannot be reached), and what opening a store fails with. */
pawl_status host_open(struct cli *cli, const struct host_options *options, struct host *out);
void host_close(struct cli *cli, struct host *host);

/* Wait for SIGINT or SIGTERM, at most wait_ms (-1: for ever); true: it came, and from now on
 * a second one ends the process at once. Modules are loaded again meanwhile, at SIGHUP. */
bool host_wait(struct host *host, int64_t wait_ms);

/* Did the store fail for good? Then the process stops. */
bool host_lost_store(void);

/* stubs.c: the tools of `run` and `resume`: what pawl.yaml says, and --stub. INVALID_REQUEST. */
pawl_status run_tools(struct cli *cli, struct host_options *options);

struct trial;

/* Follow an instance until it ends or a signal stops us, entry by entry; with a trial, as fast
 * as it goes. The exit status. */
int live_follow(struct cli *cli, struct host *host, const char *id, int64_t after_seq,
                struct trial *trial);

#endif
