/* link.h - one connection to PostgreSQL: statements in a pipeline, with a deadline of our own.
 *
 * Nothing here blocks for longer than the deadline: sockets are non-blocking and polled, and what
 * has not been answered by then is cut off. A sender of a COMMIT that is cut off does not know how
 * it ended. */
#ifndef PAWL_STORE_POSTGRES_LINK_H
#define PAWL_STORE_POSTGRES_LINK_H

#include "env/env.h"
#include "pq.h"
#include "url.h"

#define LINK_STATEMENTS 128 /* prepared ones: a power of two, more than there are texts */
#define SQLSTATE_SIZE   6

/* How an exchange with the server ended. */
enum link_end {
    LINK_OK,
    LINK_REFUSED, /* the server answered with an error: nothing behind it was run */
    LINK_LOST     /* no answer: what was sent may have been done, or may yet be */
};

struct pg_link {
    const struct pq_api *pq;
    PGconn *conn; /* NULL: it is not connected */
    const struct pg_url *url;
    struct env *env;
    char name[96]; /* application_name */
    const char *prepared[LINK_STATEMENTS];
    int deadline_ms;           /* of each exchange */
    int pid;                   /* of its server process */
    uint64_t round_trips;      /* since it was made */
    bool may_read_only;        /* a standby will do */
    bool has_warned;           /* since the last exchange began */
    char state[SQLSTATE_SIZE]; /* of the last error; "": none, or of no server */
    char words[400];
};

/* Connects, unless it is connected. STORAGE_FAILURE; OVERLOADED: too many connections. */
pawl_status link_connect(struct pg_link *link, struct scope *scope);
void link_close(struct pg_link *link); /* cuts it off, whatever is under way */

/* ---- Parameters ---- */

enum pg_type { PG_INT4, PG_INT8, PG_BYTEA, PG_TEXT };
#define PARAMS_MAX 32

struct params {
    struct arena *arena; /* of what is made for them */
    int count;
    Oid types[PARAMS_MAX];
    const char *values[PARAMS_MAX];
    int sizes[PARAMS_MAX];
    bool is_unfit; /* a parameter is too large for the protocol */
};

void params_int(struct params *params, int64_t n); /* int8 */
void params_int4(struct params *params, int64_t n);
void params_bytes(struct params *params, str bytes); /* data NULL is NULL */
void params_text(struct params *params, str text);
void params_null(struct params *params, enum pg_type type, bool is_array);

/* One array of each column of an array of structs: for `unnest($2, $3, ...)`. */
struct column {
    enum { FROM_U64, FROM_I64, FROM_U32, FROM_I32, FROM_BOOL, FROM_STR, FROM_BYTES } from;
    enum pg_type to;
    size_t offset;
    size_t size;   /* FROM_BYTES */
    bool optional; /* 0 is NULL */
};
#define COLUMN(type, field, from, to)                                                              \
    {                                                                                              \
        from, to, offsetof(type, field), 0, false                                                  \
    }
#define OPTIONAL_OF(type, field, from, to)                                                         \
    {                                                                                              \
        from, to, offsetof(type, field), 0, true                                                   \
    }
#define BYTES_OF(type, field, bytes)                                                               \
    {                                                                                              \
        FROM_BYTES, PG_BYTEA, offsetof(type, field), bytes, false                                  \
    }

void params_column(struct params *params, const void *rows, size_t size, size_t count,
                   const struct column *column);
void params_columns(struct params *params, const void *rows, size_t size, size_t count,
                    const struct column *columns, size_t column_count);
#define PARAMS_COLUMNS(params, rows, count, columns)                                               \
    params_columns(params, rows, sizeof *(rows), count, columns,                                   \
                   sizeof(columns) / sizeof *(columns))
/* int8[]; PARAMS_NO_NUMBER is NULL, and numbers NULL is no array. */
#define PARAMS_NO_NUMBER INT64_MIN
void params_optional_numbers(struct params *params, const int64_t *numbers, size_t count);
void params_numbers(struct params *params, const uint64_t *numbers, size_t count);

/* ---- Statements ---- */

struct statement {
    const char *text;      /* a constant: it is prepared once on each connection */
    struct params *params; /* NULL: none */
    PGresult *result;      /* out; the caller's to clear */
    bool is_once;          /* its text is no constant: it is not prepared */
};

/* Sends all of them and one Sync, and reads what comes: one round trip. */
#define LINK_EXCHANGE_MAX 1024
enum link_end link_exchange(struct pg_link *link, struct statement *statements, size_t count);
/* A script without parameters, of any number of statements. */
enum link_end link_script(struct pg_link *link, const char *text);
/* One statement, its rows one by one, as texts: `fn` is given each result. Not prepared. */
enum link_end link_stream(struct pg_link *link, const char *text,
                          pawl_status (*fn)(void *context, PGresult *row), void *context,
                          pawl_status *status);
/* Does nothing listen at "http://A.B.C.D:PORT"? False where that is not certain. */
bool address_refuses(str address);
/* The words of a failed exchange: STORAGE_FAILURE, or what fits better. `doing`: "reading". */
pawl_status link_fail(struct pg_link *link, struct scope *scope, const char *doing);
bool link_is_full(const struct pg_link *link); /* the last error: the server's disk */
void link_clear(struct pg_link *link, struct statement *statements, size_t count);

/* ---- Rows ---- */

struct pg_rows {
    const struct pq_api *pq;
    PGresult *result;
    int row;
};

uint32_t rows_count(const struct pg_rows *rows);
bool cell_is_null(const struct pg_rows *rows, int column);
str cell_view(const struct pg_rows *rows, int column); /* of the result itself */
str cell_str(const struct pg_rows *rows, int column, struct arena *arena);
int64_t cell_i64(const struct pg_rows *rows, int column); /* NULL is 0; int4 and int8 */
uint64_t cell_u64(const struct pg_rows *rows, int column);
uint32_t cell_u32(const struct pg_rows *rows, int column);
void cell_bytes(const struct pg_rows *rows, int column, uint8_t *out, size_t size);

/* An array column, decoded element by element: NULL and an end of it give STR_NONE. */
struct elements {
    str left;
    uint32_t count;
};
struct elements elements_of(str array);
bool element_next(struct elements *elements, str *out); /* false: it was the last */
int64_t element_i64(struct elements *elements);         /* 0: none, or NULL */
int64_t element_number(str element);

#endif
