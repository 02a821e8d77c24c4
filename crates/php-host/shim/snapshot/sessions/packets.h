/* Protocols whose packets have a head of fixed size, and in it the length of the rest. A connection gives them in
 * pieces of any size; here they are put together as far as somebody wants to look at them. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_PACKETS_H
#define HOWDAH_SNAPSHOT_SESSIONS_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_HEAD 5
/* Maximum part of a packet's content that is kept until its end. */
#define PACKET_START 128

struct tap;

/* Packets of one direction. */
typedef struct packet_stream {
    unsigned char head[PACKET_HEAD];
    uint8_t n_head;
    bool goes_on; /* MySQL: the packet before had the greatest length there is, this is its continuation */
    uint8_t part; /* PostgreSQL: texts that are over, in messages that hold several */
    uint32_t left;
    size_t taken; /* of the packet's content */
    unsigned char start[PACKET_START];
} packet_stream;

/* The protocol's handler; `sent`: by the client. */
typedef struct packet_protocol {
    uint8_t head_size;
    /* The head is complete: sets `left`. True when nothing follows. */
    bool (*begin)(struct tap *t, packet_stream *stream, bool sent);
    /* A part of the content; `taken` bytes came before. */
    void (*content)(struct tap *t, packet_stream *stream, bool sent, const char *data, size_t length);
    /* Sets `n_head` to 0. */
    void (*end)(struct tap *t, packet_stream *stream, bool sent);
} packet_protocol;

void packets_take(struct tap *t, const packet_protocol *protocol, packet_stream *stream, bool sent, const char *data,
                  size_t length);

#endif
