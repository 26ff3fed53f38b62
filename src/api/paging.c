/* paging.c - a list that is printed in pieces: all of it, or a page with the cursor of the next. */
#include "api/events.h"
#include "api/ops_int.h"

#define PAGE_BYTES ((size_t)8 << 20) /* a page that holds as much ends before its limit */

pawl_status paging_read(const struct op_call *call, struct paging *out)
{
    *out = (struct paging){ .has_limit = op_text(call, "limit").data != NULL };
    return out->has_limit ? query_limit(call, &out->limit) : PAWL_OK;
}

void paging_begin(struct paging *page, const char *member, struct buf *out)
{
    if (page->has_begun)
        return;
    page->has_begun = true;
    json_put_open(out, member, '[');
}

bool paging_is_full(const struct paging *page)
{
    return page->has_limit && (page->count >= page->limit || page->bytes >= PAGE_BYTES);
}

/* The piece before, which may be sent already, may have ended in an item. */
void paging_item(struct paging *page, struct buf *out)
{
    if (page->count > 0)
        buf_byte(out, ',');
    page->item_at = out->size;
}

void paging_note(struct paging *page, const struct buf *out)
{
    page->count++;
    page->bytes += out->size - page->item_at;
}

void paging_end(const struct paging *page, const char *next, struct buf *out)
{
    json_close(out, ']');
    if (page->has_limit)
        json_put_text(out, "next", next);
    json_opt_raw(out, "reused", page->reused);
}

void print_cursor(const struct shard_vector *at, const char *name, struct buf *out)
{
    json_key(out, name);
    buf_byte(out, '"');
    event_cursor_print(at, out);
    buf_byte(out, '"');
}
