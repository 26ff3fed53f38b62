/* target.c - where operations go: a store opened here, its owner, or a server. */
#include "api/modules.h"
#include "base/assert.h"
#include "base/node_own.h"
#include "base/redact.h"
#include "store/owner.h"
#include "surface/cli/cli.h"
#include "surface/cli/remote.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define OWNER_WAIT_MS  3000 /* between taking a store and listening */
#define OWNER_PAUSE_MS 20
#define ROWS_PAGE      200

static const char *const schemes[] = { "sqlite:",     "memory:", "postgres:",
                                       "postgresql:", "http:",   "https:" };
#define EXPECTED_STORE "sqlite:FILE, postgres://HOST/DATABASE, memory: or http://host:port"
#define SCHEME_COUNT (sizeof schemes / sizeof schemes[0])

const char *store_normal(struct cli *cli, const char *url)
{
    for (size_t i = 0; i < SCHEME_COUNT; i++) {
        size_t size = strlen(schemes[i]);
        char *normal = strncasecmp(url, schemes[i], size) == 0
                           ? arena_text(&cli->scope.arena, str_of(url))
                           : NULL;

        if (normal)
            return memcpy(normal, schemes[i], size);
    }
    return url;
}

const char *store_file(const char *url)
{
    return str_starts(str_of(url), STR("sqlite:")) ? url + strlen("sqlite:") : NULL;
}

bool store_outlives(const char *url)
{
    return store_file(url) || url_is_postgres(str_of(url));
}

const char *store_shown(struct cli *cli)
{
    str shown = url_redact(&cli->scope.arena, str_of(cli->store));

    return shown.data ? shown.data : "the store";
}

static pawl_status connect_to(struct cli *cli, const char *address)
{
    TRY(client_init(&cli->target.client, address, &cli->scope));
    cli->target.remote = &cli->target.client;
    snprintf(cli->target.address, sizeof cli->target.address, "%s", address);
    return PAWL_OK;
}

struct owner {
    int pid; /* 0: it has none */
    char who[110]; /* "process 123" */
    char address[sizeof((struct target *)0)->address];
    char secret[OWNER_SECRET_SIZE]; /* "": it wants none, or: */
    int secret_failure;             /* an errno */
};

static void look_for_owner(str file, struct owner *out)
{
    *out = (struct owner){ 0 };
    if (sqlite_owner(file, out->address, sizeof out->address, &out->pid) != PAWL_OK || out->pid < 0)
        out->pid = 0;
    snprintf(out->who, sizeof out->who, "process %d", out->pid);
    if (out->pid > 0)
        out->secret_failure = sqlite_owner_secret(file, out->secret);
}

/* The same of a store in PostgreSQL. */
static pawl_status look_for_node(struct cli *cli, struct owner *out)
{
    struct postgres_owner found;

    *out = (struct owner){ 0 };
    TRY(postgres_owner(&cli->scope, str_of(cli->store), &found));
    out->pid = found.node[0] != '\0';
    snprintf(out->who, sizeof out->who, "node %s", found.node);
    snprintf(out->address, sizeof out->address, "%s", found.address);
    snprintf(out->secret, sizeof out->secret, "%s", found.secret);
    return PAWL_OK;
}

/* FILE-stores/NAME.db is served by the owner of FILE, also while it is closed: "ADDRESS" of that
 * owner becomes "ADDRESS/v1/stores/NAME". */
static void find_first_owner(const char *file, struct owner *out)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : "";
    str folder = { file, slash ? (size_t)(slash - file) : 0 };
    size_t name_size = strlen(name), used;
    char *address = out->address;

    if (folder.size <= 7 || memcmp(slash - 7, "-stores", 7) != 0 || name_size <= 3 ||
        strcmp(name + name_size - 3, ".db") != 0)
        return;
    folder.size -= 7;
    look_for_owner(folder, out);
    used = strlen(address);
    if (out->pid > 0 && used > 0)
        snprintf(address + used, sizeof out->address - used, "/v1/stores/%.*s",
                 (int)(name_size - 3), name);
}

/* A client for it. One that may not know its secret can still have a token. */
static pawl_status connect_owner(struct cli *cli, const char *file, const struct owner *owner)
{
    if (!owner->address[0])
        return scope_fail(&cli->scope, PAWL_IN_USE, "%s is owned by %s, which has no address",
                          store_shown(cli), owner->who);
    if (owner->secret_failure && !getenv("PAWL_TOKEN"))
        return scope_fail(&cli->scope, PAWL_IN_USE,
                          "%s is owned by %s, which takes commands only from its own user: "
                          "%s-secret: %s",
                          cli->store, owner->who, file, strerror(owner->secret_failure));
    TRY(connect_to(cli, owner->address));
    if (cli->target.client.is_tls && !client_is_loopback(&cli->target.client)) {
        cli->target = (struct target){ 0 };
        return scope_fail(&cli->scope, PAWL_IN_USE,
                          "%s is served with TLS by %s at %s, which is no loopback "
                          "address; call it with curl, or let it listen on 127.0.0.1 or 0.0.0.0",
                          store_shown(cli), owner->who, owner->address);
    }
    snprintf(cli->target.client.token, sizeof cli->target.client.token, "%s", owner->secret);
    cli->target.through_owner = true;
    return PAWL_OK;
}

static pawl_status look(struct cli *cli, const char *file, struct owner *owner)
{
    if (!file)
        return look_for_node(cli, owner);
    look_for_owner(str_of(file), owner);
    if (owner->pid == 0)
        find_first_owner(file, owner);
    return PAWL_OK;
}

/* Go through the owner of a file, or of a store in PostgreSQL (NULL), if it has one: *found. An
 * owner takes the store first and listens a moment later, so it is given that moment. */
static pawl_status try_owner(struct cli *cli, const char *file, bool *found)
{
    struct owner owner;

    for (int waited_ms = 0;; waited_ms += OWNER_PAUSE_MS) {
        TRY(look(cli, file, &owner));
        *found = owner.pid > 0;
        if (!*found)
            return PAWL_OK;
        TRY(connect_owner(cli, file, &owner));
        if (client_reaches(cli->target.remote))
            return PAWL_OK;
        if (waited_ms >= OWNER_WAIT_MS)
            return scope_fail(&cli->scope, PAWL_IN_USE,
                              "%s is owned by %s, which does not answer at %s", store_shown(cli),
                              owner.who, owner.address);
        cli->target = (struct target){ 0 };
        nanosleep(&(struct timespec){ .tv_nsec = OWNER_PAUSE_MS * 1000000L }, NULL);
    }
}

/* A store that has lost entries is reported at every command, one that was made where another had
 * been at the first; other conditions only by doctor. */
static void warn_of_loss(void *context, pawl_log_level level, const char *event, const char *text)
{
    (void)context;
    (void)level;
    if (strcmp(event, "store.replaced") == 0 ||
        (strcmp(event, "health.degraded") == 0 && str_starts(str_of(text), STR("went-back: "))))
        fprintf(stderr, "pawl: %s\n", text);
}

/* Then what this program brings cannot be registered, and nothing will run. */
static bool is_read_only(const char *url)
{
    const char *file = store_file(url);

    return file && *file && sqlite_is_read_only(str_of(file));
}

static pawl_status open_local(struct cli *cli, enum target_use use, const pawl_options *options)
{
    pawl_options given = options ? *options : (pawl_options){ 0 };

    if (!given.log)
        given.log = warn_of_loss;
    if (use != USE_READ && !is_read_only(cli->store))
        api_modules_expect();
    TRY(pawl_open(&cli->target.local, cli->store, &given, &cli->scope.error));
    if (use != USE_READ && !is_read_only(cli->store))
        TRY(types_register(cli, cli->target.local, &cli->scope.error));
    return PAWL_OK;
}

/* "did you mean --store URL?" begins so; the store may have come from PAWL_STORE. */
static const char *store_prefix(const struct cli *cli)
{
    return cli->store_named ? "--store " : "PAWL_STORE=";
}

static pawl_status check_folder(struct cli *cli, const char *file, pawl_status status)
{
    const char *slash = strrchr(file, '/');
    size_t size = slash ? (size_t)(slash - file) : 0; /* 0: the present one */
    char folder[PATH_MAX];

    if (size == 0 || size >= sizeof folder)
        return PAWL_OK;
    snprintf(folder, sizeof folder, "%.*s", (int)size, file);
    if (access(folder, F_OK) == 0 || errno != ENOENT)
        return PAWL_OK;
    cli->is_advised = true;
    return scope_fail(&cli->scope, status, "there is no folder '%s'; make it: mkdir -p %s", folder,
                      folder);
}

static pawl_status check_file(struct cli *cli, const char *file, bool must_exist)
{
    bool is_there = access(file, F_OK) == 0;

    if (!is_there && errno == EACCES)
        return scope_fail(&cli->scope, PAWL_STORAGE_FAILURE,
                          "'%s' cannot be reached by this user: a folder above it may not be "
                          "entered",
                          file);
    cli->is_advised = must_exist && !is_there;
    /* Users type sqlite://FILE for FILE; a file in the root folder can also be reached so. */
    if (cli->is_advised && file[0] == '/' && file[1] == '/' && file[2] && file[2] != '/')
        return scope_fail(&cli->scope, PAWL_NOT_KNOWN,
                          "there is no store at '%s'; did you mean %ssqlite:%s?", file,
                          store_prefix(cli), file + 2);
    TRY(check_folder(cli, file, must_exist ? PAWL_NOT_KNOWN : PAWL_STORAGE_FAILURE));
    if (cli->is_advised)
        return scope_fail(&cli->scope, PAWL_NOT_KNOWN,
                          "there is no store at '%s'; make one: %s init", file, cli->command);
    return PAWL_OK;
}

static pawl_status open_file(struct cli *cli, const char *file, enum target_use use,
                             const pawl_options *options)
{
    pawl_status status;
    bool owned;

    TRY(check_file(cli, file, use == USE_EXISTING || use == USE_READ));
    if (use == USE_READ)
        return open_local(cli, use, options);
    status = try_owner(cli, file, &owned);
    if (status != PAWL_OK || owned)
        return status;
    status = open_local(cli, use, options);
    if (status != PAWL_IN_USE)
        return status;
    /* Another process took it since we looked. */
    return try_owner(cli, file, &owned) == PAWL_OK && owned ? PAWL_OK : cli->scope.error.status;
}

/* A server that finds another owner does not go through it: it waits for its own turn. */
static pawl_status open_far(struct cli *cli, enum target_use use, const pawl_options *options)
{
    struct owner owner;
    bool owned = false;
    pawl_status status = PAWL_OK;

    if (use == USE_READ) /* it reads here, at any owner's shard */
        status = look(cli, NULL, &owner);
    else if (use != USE_SERVE)
        status = try_owner(cli, NULL, &owned);
    if (status == PAWL_NOT_KNOWN && (use == USE_EXISTING || use == USE_READ)) {
        cli->is_advised = true;
        return scope_fail(&cli->scope, PAWL_NOT_KNOWN, "there is no store at %s; make one: %s init",
                          store_shown(cli), cli->command);
    }
    if ((status != PAWL_OK && status != PAWL_NOT_KNOWN) || owned)
        return status;
    status = open_local(cli, use, options);
    if (status != PAWL_IN_USE || use == USE_SERVE)
        return status;
    return try_owner(cli, NULL, &owned) == PAWL_OK && owned ? PAWL_OK : cli->scope.error.status;
}

/* "HOST:PORT": digits behind a colon, and no folder before it. */
static bool looks_like_address(const char *text)
{
    const char *colon = strrchr(text, ':');

    return colon && colon > text && colon[1] && !strchr(text, '/') &&
           strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

/* What was probably meant by a store without a scheme of ours: the scheme and the rest. */
static const char *meant_scheme(const char **url)
{
    if (strcmp(*url, "memory") == 0) {
        *url = "";
        return "memory:";
    }
    if (str_starts(str_of(*url), STR("file:")))
        *url += strlen("file:");
    return looks_like_address(*url) ? "http://" : "sqlite:";
}

static pawl_status check_url(struct cli *cli)
{
    const char *url = cli->store, *rest = url, *scheme;
    const char *source = cli->store_named ? "--store" : "PAWL_STORE";

    if (str_starts(str_of(url), STR("https:")))
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                          "the command line speaks plain HTTP, not TLS, and cannot call '%s'; call "
                          "it with curl, or the server behind its TLS proxy as http://host:port",
                          url);
    for (size_t i = 0; i < SCHEME_COUNT; i++)
        if (str_starts(str_of(url), str_of(schemes[i])))
            return PAWL_OK;
    if (strstr(url, "://"))
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                          "%s: expected " EXPECTED_STORE ", found '%s'", source, store_shown(cli));
    scheme = meant_scheme(&rest);
    return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                      "%s: expected " EXPECTED_STORE ", found '%s'; did you mean %s%s%s?", source,
                      url, store_prefix(cli), scheme, rest);
}

pawl_status target_open(struct cli *cli, enum target_use use, const pawl_options *options)
{
    const char *file = store_file(cli->store);

    TRY(check_url(cli));
    if (str_starts(str_of(cli->store), STR("http:")))
        return connect_to(cli, cli->store);
    if (file && *file)
        return open_file(cli, file, use, options);
    if (url_is_postgres(str_of(cli->store)))
        return open_far(cli, use, options);
    return open_local(cli, use, options);
}

pawl_status target_open_any(struct cli *cli, const pawl_options *options)
{
    const char *file = store_file(cli->store);

    if (file && access(file, F_OK) != 0)
        cli->store = "memory:";
    return target_open(cli, USE_CREATE, options);
}

void target_close(struct cli *cli)
{
    pawl_close(cli->target.local);
    cli->target = (struct target){ 0 };
}

static pawl_status call_local(struct cli *cli, const char *operation, struct buf *input,
                              const struct answer_to *to)
{
    pawl *p = cli->target.local;
    char *answer = NULL;

    if (to->put)
        return op_call_pieces(p, operation, buf_view(input), &cli->scope, to->put, to->context);
    TRY(pawl_call(p, operation, buf_text(input), &answer, &cli->scope.error));
    *to->whole = arena_str(&cli->scope.arena, str_of(answer));
    pawl_free(p, answer);
    return to->whole->data ? PAWL_OK : scope_no_memory(&cli->scope);
}

/* Another process took the store after we had opened it: from now on we go through that. */
static bool follow_owner(struct cli *cli)
{
    const char *file = store_file(cli->store);
    bool owned = false;

    if (!store_outlives(cli->store))
        return false;
    target_close(cli);
    return try_owner(cli, file, &owned) == PAWL_OK && owned;
}

pawl_status target_call(struct cli *cli, const char *operation, struct buf *input,
                        const struct answer_to *to)
{
    pawl_status status = PAWL_IN_USE;

    ASSERT(cli->target.local || cli->target.remote);
    if (input->failed)
        status = scope_fail(&cli->scope, PAWL_TOO_LARGE, "the input is too large");
    else if (cli->target.local)
        status = call_local(cli, operation, input, to);
    if (status == PAWL_IN_USE && (cli->target.remote || (!to->put && follow_owner(cli))))
        status = remote_call(cli->target.remote, operation, buf_view(input), &cli->scope, to);
    buf_fini(input);
    return status;
}

/* ---- Inputs ---- */

void input_init(struct buf *input)
{
    buf_init(input, &heap_libc, CLI_ANSWER_MAX);
    json_open(input, '{');
}

static void put_members(struct buf *input, const struct ask_member *member)
{
    for (; member && member->name; member++) {
        if (member->text.data)
            json_put_str(input, member->name, member->text);
        else if (member->json.data)
            json_put_raw(input, member->name, member->json);
        else if (member->number)
            json_put_i64(input, member->name, member->number);
    }
    json_close(input, '}');
}

void input_with(struct buf *input, const struct ask_member *members)
{
    input_init(input);
    put_members(input, members);
}

pawl_status input_typed(struct cli *cli, struct buf *input, const struct ask_member *members)
{
    pawl_status status;

    input_init(input);
    status = args_members(cli, input);
    put_members(input, members);
    if (status != PAWL_OK)
        buf_fini(input);
    return status;
}

/* ---- Questions ---- */

static pawl_status ask(struct cli *cli, const char *operation, struct buf *input, struct node **out)
{
    str answer;

    TRY(target_call(cli, operation, input, &(struct answer_to){ .whole = &answer }));
    return node_read_own(&cli->scope, answer, out);
}

pawl_status cli_ask(struct cli *cli, const char *operation, const struct ask_member *members,
                    struct node **out)
{
    struct buf input;

    input_with(&input, members);
    return ask(cli, operation, &input, out);
}

pawl_status cli_ask_id(struct cli *cli, const char *operation, const char *id, struct node **out)
{
    return cli_ask(cli, operation, WITH({ "instance_id", str_of(id) }), out);
}

pawl_status cli_ask_typed(struct cli *cli, const char *operation, const struct ask_member *members,
                          struct node **out)
{
    struct buf input;

    TRY(input_typed(cli, &input, members));
    return ask(cli, operation, &input, out);
}

pawl_status sql_first(struct cli *cli, const char *query, const struct node **out)
{
    struct node *answer;

    *out = NULL;
    TRY(cli_ask(cli, "store.sql", WITH({ "text", str_of(query) }), &answer));
    *out = node_at(node_first(answer, "rows"), 0);
    return PAWL_OK;
}

/* The caller's scope is there for what `each` keeps; a page has its own. */
pawl_status rows_each(struct cli *cli, const char *operation, const char *member, const char *order,
                      each_row_fn each, void *context)
{
    char after[512] = "";
    pawl_status status;

    do {
        struct scope kept = scope_take(cli), page;
        struct node *answer = NULL;

        status = cli_ask(cli, operation,
                         WITH({ "limit", .number = ROWS_PAGE }, { "order", str_of(order) },
                              { "after", str_of(after[0] ? after : NULL) }),
                         &answer);
        kept.error = cli->scope.error;
        page = cli->scope;
        cli->scope = kept;
        for (const struct node *row = node_first(answer, member); row && status == PAWL_OK;
             row = row->next)
            status = each(context, row);
        snprintf(after, sizeof after, "%.*s", STR_ARG(member_str(answer, "next")));
        scope_fini(&page);
    } while (status == PAWL_OK && after[0]);
    return status;
}
