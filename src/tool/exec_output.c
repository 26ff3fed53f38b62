/* exec_output.c - what a program printed becomes the result of its step.
 *
 * Without `as`, output that is JSON is that value, no output is null, and all else is a text. */
#include "base/limits.h"
#include "tool/exec_int.h"

/* A line is without its end: LF or CR LF. */
static void print_lines(struct buf *json, str text)
{
    str line;

    json_open(json, '[');
    while (str_take(&text, '\n', &line)) {
        if (line.size > 0 && line.data[line.size - 1] == '\r')
            line.size--;
        json_str(json, line);
    }
    json_close(json, ']');
}

/* The text without the end of its last line, as a shell's $(...) gives it. */
static str without_end(str text)
{
    if (text.size > 0 && text.data[text.size - 1] == '\n')
        text.size--;
    if (text.size > 0 && text.data[text.size - 1] == '\r')
        text.size--;
    return text;
}

static void answer_text(struct call *call, enum exec_as as, str printed)
{
    struct buf json;

    call->result = (struct tool_result){ .failed = false };
    if (!str_is_utf8(printed, false)) {
        call_fail(call, "what the program printed is not UTF-8 text");
        return;
    }
    buf_init(&json, call->scope->arena.heap, 0);
    if (as == AS_LINES)
        print_lines(&json, printed);
    else
        json_str(&json, without_end(printed));
    if (json.failed)
        call_no_memory(call);
    else if (json.size > LIMIT_TEXT)
        call_fail(call, "what the program printed is over %u bytes as JSON", LIMIT_TEXT);
    else
        call_result(call, buf_view(&json));
    buf_fini(&json);
}

void exec_output_read(struct call *call, enum exec_as as, str printed)
{
    if (as == AS_JSON || as == AS_IT_IS)
        call_outside(call, "what the program printed", printed);
    if (as == AS_TEXT || as == AS_LINES || (as == AS_IT_IS && call->result.failed))
        answer_text(call, as, printed);
}
