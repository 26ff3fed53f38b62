/* verb_export.c - export, import: definitions, and instances with their history, as lines. */
#include "repair/import.h"
#include "store/owner.h"
#include "surface/cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEEN_MAX  4096 /* definitions that were written already */
#define TELL_EACH 1000

struct export_output {
    struct cli *cli;
    FILE *out;
    struct term errors;
    uint64_t seen[SEEN_MAX]; /* hashes of definition lines */
    uint32_t seen_count;
    int64_t instances, definitions;
    struct buf line; /* that has come in part */
};

/* ---- export ---- */

/* Without its time: each shard has recorded a definition at one of its own. */
static uint64_t definition_hash(str line)
{
    static const char member[] = "\"created_at\":";
    const char *at = memmem(line.data, line.size, member, sizeof member - 1);
    size_t before = at ? (size_t)(at - line.data) : line.size;

    return str_hash((str){ line.data, before }) * 31 +
           str_hash(str_after(str_from(line, before), ','));
}

static bool is_new(struct export_output *work, str line)
{
    uint64_t hash = definition_hash(line);

    for (uint32_t i = 0; i < work->seen_count; i++)
        if (work->seen[i] == hash)
            return false;
    if (work->seen_count < SEEN_MAX)
        work->seen[work->seen_count++] = hash;
    return true;
}

/* A definition that many instances have is written once. */
static bool put_line(struct export_output *work, struct scope *scope, str line)
{
    bool is_definition = str_starts(line, STR("{\"definition\":"));

    if (is_definition && !is_new(work, line))
        return true;
    work->definitions += is_definition;
    if (fwrite(line.data, 1, line.size, work->out) == line.size)
        return true;
    scope_fail(scope, PAWL_STORAGE_FAILURE, "cannot write the export: %s", strerror(errno));
    return false;
}

/* Lines, wherever the pieces are cut. */
static bool put_lines(void *context, struct scope *scope, str text)
{
    struct export_output *work = context;

    while (text.size > 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end ? (size_t)(end - text.data) + 1 : text.size;

        buf_add(&work->line, text.data, size);
        text = str_from(text, size);
        if (work->line.failed) {
            scope_fail(scope, PAWL_NO_MEMORY, "a line of the export is too large");
            return false;
        }
        if (!end)
            return true;
        if (!put_line(work, scope, buf_view(&work->line)))
            return false;
        buf_clear(&work->line);
    }
    return true;
}

static pawl_status export_one(struct export_output *work, const char *operation,
                              const struct ask_member *members)
{
    struct scope kept = scope_take(work->cli);
    struct buf input;
    pawl_status status;

    input_with(&input, members);
    buf_clear(&work->line);
    status = target_call(work->cli, operation, &input,
                         &(struct answer_to){ .put = put_lines, .context = work });
    scope_give(work->cli, kept);
    if (work->errors.tty)
        fprintf(stderr, "\r\033[K  %lld definitions, %lld instances", (long long)work->definitions,
                (long long)work->instances);
    return status;
}

static pawl_status export_instance(struct export_output *work, str id)
{
    TRY(export_one(work, "instance.export", WITH({ "instance_id", id })));
    work->instances++;
    return PAWL_OK;
}

static pawl_status export_versions(void *context, const struct node *row)
{
    for (int64_t i = 1; i <= member_int(row, "version"); i++) {
        pawl_status status =
            export_one(context, "definition.export",
                       WITH({ "name", member_str(row, "name") }, { "version", .number = i }));

        if (status != PAWL_NOT_KNOWN) /* of an import: there may be gaps */
            TRY(status);
    }
    return PAWL_OK;
}

static pawl_status export_row(void *context, const struct node *row)
{
    return export_instance(context, member_str(row, "instance_id"));
}

static pawl_status export_asked(struct export_output *work)
{
    struct cli *cli = work->cli;
    const char *id;

    fputs(EXPORT_HEADER "\n", work->out);
    if (cli->operand_count == 0)
        TRY(rows_each(cli, "definition.list", "definitions", NULL, export_versions, work));
    if (cli->operand_count == 0 && !args_flag(cli, "definitions"))
        TRY(rows_each(cli, "instance.list", "instances", "oldest", export_row, work));
    for (uint32_t i = 0; i < cli->operand_count; i++) {
        TRY(id_resolve(cli, cli->operands[i], &id));
        TRY(export_instance(work, str_of(id)));
    }
    return PAWL_OK;
}

/* ---- The file ---- */

/* A file gets its name when it is whole. What is no file of its own is written as it is. */
struct output {
    const char *path;   /* NULL: standard output */
    char partial[4096]; /* the name until then; "": none */
    FILE *file;
};

static bool output_open(struct cli *cli, struct output *output)
{
    struct stat there;
    bool is_other = output->path && stat(output->path, &there) == 0 && !S_ISREG(there.st_mode);

    if (!output->path) {
        output->file = cli->term.out;
        return true;
    }
    if (!is_other)
        snprintf(output->partial, sizeof output->partial, "%s.partial", output->path);
    output->file = fopen(is_other ? output->path : output->partial, "wb");
    return output->file != NULL;
}

/* False: errno says why, and there is no file. */
static bool output_close(struct output *output, bool is_whole)
{
    bool is_written = fflush(output->file) == 0 && !ferror(output->file);
    int kept;

    if (!output->path)
        return is_written;
    if (is_whole && is_written && output->partial[0])
        is_written = fsync(fileno(output->file)) == 0;
    is_written = fclose(output->file) == 0 && is_written;
    if (is_whole && is_written && output->partial[0])
        is_written = rename(output->partial, output->path) == 0;
    kept = errno;
    if (output->partial[0] && !(is_whole && is_written))
        unlink(output->partial);
    errno = kept;
    return is_written;
}

static pawl_status export_to(struct export_output *work, struct output *output)
{
    pawl_status status;

    work->out = output->file;
    term_init(&work->errors, stderr);
    buf_init(&work->line, &heap_libc, CLI_MEMORY_MAX);
    status = export_asked(work);
    buf_fini(&work->line);
    if (work->errors.tty)
        fputs("\r\033[K", stderr);
    if (!output_close(output, status == PAWL_OK) && status == PAWL_OK)
        status = scope_fail(&work->cli->scope, PAWL_STORAGE_FAILURE, "cannot write '%s': %s",
                            output->path ? output->path : "standard output", strerror(errno));
    return status;
}

int verb_export(struct cli *cli)
{
    struct export_output *work = ARENA_NEW(&cli->scope.arena, struct export_output);
    struct output output = { .path = args_option(cli, "output") };

    if (args_flag(cli, "definitions") && cli->operand_count > 0)
        return usage_fail(cli, "IDs or --definitions, not both");
    if (!work)
        scope_no_memory(&cli->scope);
    if (!work || target_open(cli, USE_EXISTING, NULL) != PAWL_OK)
        return report(cli);
    if (!output_open(cli, &output)) {
        fprintf(stderr, "pawl: cannot write '%s': %s\n", output.path, strerror(errno));
        return EXIT_USAGE;
    }
    work->cli = cli;
    if (export_to(work, &output) != PAWL_OK)
        return report(cli);
    if (output.path)
        fprintf(cli->term.out, "%s and %s\n",
                counted(&cli->scope.arena, work->definitions, "definition", "definitions"),
                counted(&cli->scope.arena, work->instances, "instance", "instances"));
    return EXIT_DONE;
}

/* ---- import ---- */

static pawl_status read_file(struct cli *cli, FILE *file, struct import *import)
{
    struct term errors;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    uint64_t count = 0;
    pawl_status status = PAWL_OK;

    term_init(&errors, stderr);
    while (status == PAWL_OK && (size = getline(&line, &capacity, file)) >= 0) {
        while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            size--;
        if (size > 0)
            status = import_line(import, (str){ line, (size_t)size });
        if (errors.tty && ++count % TELL_EACH == 0)
            fprintf(stderr, "\r\033[K  %llu records read",
                    (unsigned long long)import_count(import));
    }
    free(line);
    if (errors.tty)
        fputs("\r\033[K", stderr);
    if (status == PAWL_OK && ferror(file))
        status = scope_fail(&cli->scope, PAWL_INVALID_REQUEST, "cannot read the file: %s",
                            strerror(errno));
    return status;
}

static pawl_status import_all(struct cli *cli, FILE *file, struct buf *answer)
{
    struct import *import = NULL;
    pawl_status status = import_open(cli->store, &cli->scope, &import);

    if (status == PAWL_OK)
        status = read_file(cli, file, import);
    if (status == PAWL_OK)
        status = import_finish(import, answer);
    import_close(import);
    return status;
}

static void put_imported(struct cli *cli, const struct node *answer)
{
    struct arena *arena = &cli->scope.arena;
    int64_t there = member_int(answer, "already_there");

    fprintf(cli->term.out, "%s history, %s, %s\n",
            counted(arena, member_int(answer, "instances"), "instance with its",
                    "instances with their"),
            counted(arena, member_int(answer, "definitions"), "definition", "definitions"),
            counted(arena, member_int(answer, "records"), "record", "records"));
    if (there > 0)
        fprintf(cli->term.out, "%s here already, with the same records\n",
                counted(arena, there, "instance was", "instances were"));
    term_put(&cli->term, DIM, "now: %s verify\n", cli->command);
}

int verb_import(struct cli *cli)
{
    const char *path = cli->operands[0], *file_of_store = store_file(cli->store);
    bool is_far = url_is_postgres(str_of(cli->store));
    struct node *answer = NULL;
    struct buf out;
    pawl_status status;
    FILE *file;

    if (!is_far && (!file_of_store || !*file_of_store))
        return usage_fail(cli, "import needs a store that no process owns: --store sqlite:FILE or "
                               "postgres://HOST/DATABASE");
    if (!file_is_readable(path))
        return EXIT_USAGE;
    file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "pawl: cannot read '%s': %s\n", path, strerror(errno));
        return EXIT_USAGE;
    }
    buf_init(&out, &heap_libc, CLI_ANSWER_MAX);
    status = answer_take(cli, import_all(cli, file, &out), &out, &answer);
    if (file != stdin)
        fclose(file);
    return verb_conclude(cli, status, answer, put_imported);
}
