/* peer_int.h - private to peer: an answer as it comes. */
#ifndef PAWL_PEER_PEER_INT_H
#define PAWL_PEER_PEER_INT_H

#include "peer/peer.h"

#define PEER_ADDRESS_MAX 280

struct peer_intake {
    struct scope *scope;
    struct buf held;  /* read, and not taken apart yet */
    struct buf *body; /* the answer's is added to it */
    size_t begun;     /* where */
    bool has_head, has_length, is_chunked, is_kept, is_whole, is_bad;
    int status;
    const char *type;
    uint64_t left; /* of the body, or of its present chunk */
};

/* More bytes. True: no more are wanted (it is whole, or no answer of HTTP). */
bool intake_take(struct peer_intake *intake, str bytes);
/* The connection has ended: is the answer whole? */
bool intake_end(struct peer_intake *intake);

#endif
