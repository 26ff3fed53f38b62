/* params.c - values on their way to the server and back, in PostgreSQL's binary form: numbers are
 * big-endian, an array has a header of 20 bytes and its elements with their sizes in front. */
#include "base/assert.h"
#include "link.h"
#include <endian.h>

#define OID_BYTEA       17
#define OID_INT8        20
#define OID_INT4        23
#define OID_TEXT        25
#define OID_BYTEA_ARRAY 1001
#define OID_INT4_ARRAY  1007
#define OID_TEXT_ARRAY  1009
#define OID_INT8_ARRAY  1016
#define ARRAY_HEADER    20
#define PARAM_MAX       ((size_t)1 << 29) /* a message of the protocol has at most 1 GiB */

static const struct {
    Oid one, array;
    size_t size; /* 0: it varies */
} types[] = {
    [PG_INT4] = { OID_INT4, OID_INT4_ARRAY, 4 },
    [PG_INT8] = { OID_INT8, OID_INT8_ARRAY, 8 },
    [PG_BYTEA] = { OID_BYTEA, OID_BYTEA_ARRAY, 0 },
    [PG_TEXT] = { OID_TEXT, OID_TEXT_ARRAY, 0 },
};

static void put_u32(char **at, uint32_t n)
{
    n = htobe32(n);
    memcpy(*at, &n, sizeof n);
    *at += sizeof n;
}

static void put_u64(char **at, uint64_t n)
{
    n = htobe64(n);
    memcpy(*at, &n, sizeof n);
    *at += sizeof n;
}

static void add(struct params *params, Oid type, const char *value, size_t size)
{
    ASSERT(params->count < PARAMS_MAX);
    params->is_unfit |= size > PARAM_MAX;
    params->types[params->count] = type;
    params->values[params->count] = value;
    params->sizes[params->count++] = (int)size;
}

void params_int(struct params *params, int64_t n)
{
    char *value = arena_alloc(params->arena, sizeof n), *at = value;

    if (value)
        put_u64(&at, (uint64_t)n);
    add(params, OID_INT8, value, sizeof n);
}

void params_int4(struct params *params, int64_t n)
{
    char *value = arena_alloc(params->arena, 4), *at = value;

    if (value)
        put_u32(&at, (uint32_t)n);
    add(params, OID_INT4, value, 4);
}

void params_bytes(struct params *params, str bytes)
{
    add(params, OID_BYTEA, bytes.data, bytes.size);
}

void params_text(struct params *params, str text)
{
    add(params, OID_TEXT, text.data, text.size);
}

void params_null(struct params *params, enum pg_type type, bool is_array)
{
    add(params, is_array ? types[type].array : types[type].one, NULL, 0);
}

/* ---- Arrays ---- */

static int64_t number_in(const void *row, const struct column *column)
{
    const char *field = (const char *)row + column->offset;
    uint64_t u64;
    uint32_t u32;
    int32_t i32;
    bool truth;

    switch (column->from) {
    case FROM_U64:
    case FROM_I64:
        memcpy(&u64, field, sizeof u64);
        return (int64_t)u64;
    case FROM_U32:
        memcpy(&u32, field, sizeof u32);
        return u32;
    case FROM_I32:
        memcpy(&i32, field, sizeof i32);
        return i32;
    case FROM_BOOL:
        memcpy(&truth, field, sizeof truth);
        return truth;
    case FROM_STR:
    case FROM_BYTES:
        break;
    }
    panic_at(__FILE__, __LINE__, "a column of no number");
}

static str bytes_in(const void *row, const struct column *column)
{
    const char *field = (const char *)row + column->offset;
    str text;

    if (column->from == FROM_BYTES)
        return (str){ field, column->size };
    memcpy(&text, field, sizeof text);
    return text;
}

static bool is_bytes(const struct column *column)
{
    return column->from == FROM_STR || column->from == FROM_BYTES;
}

static size_t array_size(const char *rows, size_t size, size_t count, const struct column *column)
{
    size_t all = ARRAY_HEADER + count * (4 + types[column->to].size);

    for (size_t i = 0; is_bytes(column) && i < count; i++)
        all += bytes_in(rows + i * size, column).size;
    return all;
}

static void put_element(char **at, const void *row, const struct column *column)
{
    if (is_bytes(column)) {
        str bytes = bytes_in(row, column);

        put_u32(at, bytes.data ? (uint32_t)bytes.size : UINT32_MAX);
        if (bytes.size > 0)
            memcpy(*at, bytes.data, bytes.size);
        *at += bytes.data ? bytes.size : 0;
    } else {
        int64_t n = number_in(row, column);

        if (column->optional ? n == 0 : n == PARAMS_NO_NUMBER) {
            put_u32(at, UINT32_MAX);
            return;
        }
        put_u32(at, (uint32_t)types[column->to].size);
        if (column->to == PG_INT8)
            put_u64(at, (uint64_t)n);
        else
            put_u32(at, (uint32_t)n);
    }
}

static void put_header(char **at, enum pg_type type, size_t count)
{
    put_u32(at, 1); /* dimensions */
    put_u32(at, 1); /* there may be NULLs */
    put_u32(at, types[type].one);
    put_u32(at, (uint32_t)count);
    put_u32(at, 1); /* the first index */
}

void params_column(struct params *params, const void *rows, size_t size, size_t count,
                   const struct column *column)
{
    size_t all = array_size(rows, size, count, column);
    char *value = all <= PARAM_MAX ? arena_alloc(params->arena, all) : NULL, *at = value;

    params->is_unfit |= all > PARAM_MAX;
    if (value) {
        put_header(&at, column->to, count);
        for (size_t i = 0; i < count; i++)
            put_element(&at, (const char *)rows + i * size, column);
        all = (size_t)(at - value);
    }
    add(params, types[column->to].array, value, value ? all : 0);
}

void params_columns(struct params *params, const void *rows, size_t size, size_t count,
                    const struct column *columns, size_t column_count)
{
    for (size_t i = 0; i < column_count; i++)
        params_column(params, rows, size, count, &columns[i]);
}

void params_numbers(struct params *params, const uint64_t *numbers, size_t count)
{
    static const struct column number = { FROM_U64, PG_INT8, 0, 0, false };

    params_column(params, numbers, sizeof *numbers, count, &number);
}

void params_optional_numbers(struct params *params, const int64_t *numbers, size_t count)
{
    static const struct column number = { FROM_I64, PG_INT8, 0, 0, false };

    if (numbers)
        params_column(params, numbers, sizeof *numbers, count, &number);
    else
        params_null(params, PG_INT8, true);
}

/* ---- Rows ---- */

uint32_t rows_count(const struct pg_rows *rows)
{
    return rows->result ? (uint32_t)rows->pq->ntuples(rows->result) : 0;
}

bool cell_is_null(const struct pg_rows *rows, int column)
{
    return rows->pq->getisnull(rows->result, rows->row, column);
}

str cell_view(const struct pg_rows *rows, int column)
{
    if (cell_is_null(rows, column))
        return STR_NONE;
    return (str){ rows->pq->getvalue(rows->result, rows->row, column),
                  (size_t)rows->pq->getlength(rows->result, rows->row, column) };
}

str cell_str(const struct pg_rows *rows, int column, struct arena *arena)
{
    return arena_str(arena, cell_view(rows, column));
}

static int64_t number_of(str bytes)
{
    uint64_t u64;
    uint32_t u32;

    if (bytes.size == sizeof u64) {
        memcpy(&u64, bytes.data, sizeof u64);
        return (int64_t)be64toh(u64);
    }
    if (bytes.size != sizeof u32)
        return bytes.size == 1 ? bytes.data[0] : 0; /* a boolean, or NULL */
    memcpy(&u32, bytes.data, sizeof u32);
    return (int32_t)be32toh(u32);
}

int64_t element_number(str element)
{
    return number_of(element);
}

int64_t cell_i64(const struct pg_rows *rows, int column)
{
    return number_of(cell_view(rows, column));
}

uint64_t cell_u64(const struct pg_rows *rows, int column)
{
    return (uint64_t)cell_i64(rows, column);
}

uint32_t cell_u32(const struct pg_rows *rows, int column)
{
    return (uint32_t)cell_i64(rows, column);
}

void cell_bytes(const struct pg_rows *rows, int column, uint8_t *out, size_t size)
{
    str view = cell_view(rows, column);

    memset(out, 0, size);
    if (view.size == size && size > 0)
        memcpy(out, view.data, size);
}

/* What a server sends is well-formed, or it is no array that we know: then it has no elements. */
struct elements elements_of(str array)
{
    struct elements elements = { 0 };

    if (array.size < ARRAY_HEADER)
        return elements;
    elements.count = (uint32_t)number_of((str){ array.data + 12, 4 });
    elements.left = str_from(array, ARRAY_HEADER);
    return elements;
}

bool element_next(struct elements *elements, str *out)
{
    int64_t size;

    *out = STR_NONE;
    if (elements->count == 0 || elements->left.size < 4)
        return false;
    elements->count--;
    size = number_of((str){ elements->left.data, 4 });
    elements->left = str_from(elements->left, 4);
    if (size < 0)
        return true;
    if ((uint64_t)size > elements->left.size)
        return false;
    *out = (str){ elements->left.data, (size_t)size };
    elements->left = str_from(elements->left, (size_t)size);
    return true;
}

int64_t element_i64(struct elements *elements)
{
    str bytes;

    return element_next(elements, &bytes) ? number_of(bytes) : 0;
}
