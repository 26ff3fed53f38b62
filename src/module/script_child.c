/* script_child.c - the process in which a file of Lua runs: it speaks the turn protocol itself. */
#include "env/env.h"
#include "module/module_int.h"
#include "script/script.h"
#include <stdio.h>
#include <unistd.h>

static uint64_t seed(void *context)
{
    struct env *env = context;
    uint64_t found = 0;

    env->random(env, &found, sizeof found);
    return found;
}

/* What the code logs goes where a module's prints go. One write, so that lines stay whole. */
static void write_line(void *context, const char *line)
{
    struct buf text;

    (void)context;
    buf_init(&text, &heap_libc, FRAME_MAX);
    buf_str(&text, str_of(line));
    buf_byte(&text, '\n');
    if (!text.failed && write(STDERR_FILENO, text.data, text.size) < 0) {
        /* there is no one to tell */
    }
    buf_fini(&text);
}

/* The sealed bytes that every process of this load has. */
static bool read_image(struct buf *out)
{
    char block[65536];
    off_t at = 0;
    ssize_t size;

    while ((size = pread(IMAGE_FD, block, sizeof block, at)) > 0) {
        buf_str(out, (str){ block, (size_t)size });
        at += size;
    }
    (void)close(IMAGE_FD);
    return size == 0 && !out->failed;
}

static bool introduce(struct script *script, struct scope *scope, int out)
{
    struct buf frame;
    pawl_status status;
    bool ok;

    buf_init(&frame, &heap_libc, FRAME_MAX);
    status = script_hello(script, scope, &frame);
    if (status != PAWL_OK) {
        buf_clear(&frame);
        json_open(&frame, '{');
        json_put_text(&frame, "error", scope->error.message);
        json_close(&frame, '}');
    }
    ok = frame_write(out, -1, &frame) == FRAME_OK;
    buf_fini(&frame);
    return ok && status == PAWL_OK;
}

static bool answer_one(struct script *script, struct scope *scope, int in, int out)
{
    struct node *request;
    struct buf frame;
    pawl_status status;
    str text;
    bool ok;

    if (frame_read(in, -1, scope, &text) != FRAME_OK)
        return false;
    buf_init(&frame, &heap_libc, FRAME_MAX);
    status = node_read_json(scope, text, &request);
    if (status == PAWL_OK)
        status = script_answer(script, scope, request, &frame);
    scope->error.status = status;
    if (status != PAWL_OK) {
        buf_clear(&frame);
        wire_print_failure(&scope->error, &frame);
    }
    ok = frame_write(out, -1, &frame) == FRAME_OK;
    buf_fini(&frame);
    return ok;
}

int script_child(const char *path, int in, int out)
{
    struct env *env = env_os_new(&heap_libc);
    struct script_host host = { seed, write_line, env };
    struct script *script = NULL;
    struct scope scope;
    struct buf text;
    char name[200];
    bool ok;

    (void)snprintf(name, sizeof name, "@%s", image_file_name(path));
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    buf_init(&text, &heap_libc, FRAME_MAX);
    ok = env && read_image(&text) &&
         script_open(&heap_libc, &scope, buf_view(&text), name, &host, &script) == PAWL_OK &&
         introduce(script, &scope, out);
    while (ok) {
        scope_clear(&scope);
        ok = answer_one(script, &scope, in, out);
    }
    script_close(script);
    buf_fini(&text);
    scope_fini(&scope);
    if (env)
        env->close(env);
    return 0;
}
