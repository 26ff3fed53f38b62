/* pq.h - libpq's functions, loaded when a PostgreSQL store is first used: the binary starts and
 * works without the library. What is used of its interface is declared here (it has been stable
 * since libpq.so.5), so that a build needs no header of PostgreSQL's either. */
#ifndef PAWL_STORE_POSTGRES_PQ_H
#define PAWL_STORE_POSTGRES_PQ_H

#include "base/scope.h"
#include <stddef.h>

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
typedef unsigned int Oid;
typedef void (*PQnoticeReceiver)(void *context, const PGresult *result);

typedef enum { CONNECTION_OK, CONNECTION_BAD } ConnStatusType; /* there are more */
typedef enum {
    PGRES_POLLING_FAILED,
    PGRES_POLLING_READING,
    PGRES_POLLING_WRITING,
    PGRES_POLLING_OK
} PostgresPollingStatusType;
typedef enum {
    PGRES_EMPTY_QUERY,
    PGRES_COMMAND_OK,
    PGRES_TUPLES_OK,
    PGRES_COPY_OUT,
    PGRES_COPY_IN,
    PGRES_BAD_RESPONSE,
    PGRES_NONFATAL_ERROR,
    PGRES_FATAL_ERROR,
    PGRES_COPY_BOTH,
    PGRES_SINGLE_TUPLE,
    PGRES_PIPELINE_SYNC,
    PGRES_PIPELINE_ABORTED
} ExecStatusType;

typedef struct PQconninfoOption {
    char *keyword, *envvar, *compiled, *val, *label, *dispchar;
    int dispsize;
} PQconninfoOption;

#define PG_DIAG_SEVERITY_NONLOCALIZED 'V'
#define PG_DIAG_SQLSTATE              'C'
#define PG_DIAG_MESSAGE_PRIMARY       'M'
#define PG_DIAG_MESSAGE_DETAIL        'D'

#define PQ_FUNCTIONS(X)                                                                            \
    X(PGconn *, connectStartParams, (const char *const *, const char *const *, int))               \
    X(PostgresPollingStatusType, connectPoll, (PGconn *))                                          \
    X(PQconninfoOption *, conninfoParse, (const char *, char **))                                  \
    X(void, conninfoFree, (PQconninfoOption *))                                                    \
    X(ConnStatusType, status, (const PGconn *))                                                    \
    X(void, finish, (PGconn *))                                                                    \
    X(char *, errorMessage, (const PGconn *))                                                      \
    X(int, socket, (const PGconn *))                                                               \
    X(int, backendPID, (const PGconn *))                                                           \
    X(int, serverVersion, (const PGconn *))                                                        \
    X(const char *, parameterStatus, (const PGconn *, const char *))                               \
    X(int, setnonblocking, (PGconn *, int))                                                        \
    X(PQnoticeReceiver, setNoticeReceiver, (PGconn *, PQnoticeReceiver, void *))                   \
    X(int, enterPipelineMode, (PGconn *))                                                          \
    X(int, exitPipelineMode, (PGconn *))                                                           \
    X(int, pipelineSync, (PGconn *))                                                               \
    X(int, sendQuery, (PGconn *, const char *))                                                    \
    X(int, sendQueryParams,                                                                        \
      (PGconn *, const char *, int, const Oid *, const char *const *, const int *, const int *,    \
       int))                                                                                       \
    X(int, sendPrepare, (PGconn *, const char *, const char *, int, const Oid *))                  \
    X(int, sendQueryPrepared,                                                                      \
      (PGconn *, const char *, int, const char *const *, const int *, const int *, int))           \
    X(int, setSingleRowMode, (PGconn *))                                                           \
    X(int, flush, (PGconn *))                                                                      \
    X(int, consumeInput, (PGconn *))                                                               \
    X(int, isBusy, (PGconn *))                                                                     \
    X(PGresult *, getResult, (PGconn *))                                                           \
    X(ExecStatusType, resultStatus, (const PGresult *))                                            \
    X(char *, resultErrorField, (const PGresult *, int))                                           \
    X(char *, cmdStatus, (PGresult *))                                                             \
    X(char *, cmdTuples, (PGresult *))                                                             \
    X(int, ntuples, (const PGresult *))                                                            \
    X(int, nfields, (const PGresult *))                                                            \
    X(char *, fname, (const PGresult *, int))                                                      \
    X(Oid, ftype, (const PGresult *, int))                                                         \
    X(char *, getvalue, (const PGresult *, int, int))                                              \
    X(int, getlength, (const PGresult *, int, int))                                                \
    X(int, getisnull, (const PGresult *, int, int))                                                \
    X(void, clear, (PGresult *))                                                                   \
    X(void, freemem, (void *))

struct pq_api {
#define X(type, name, parameters) type(*name) parameters;
    PQ_FUNCTIONS(X)
#undef X
};

/* Once for the process. NULL: STORAGE_FAILURE in the scope, which names the package. */
const struct pq_api *pq_get(struct scope *scope);

#endif
