/* Protocols whose packets have a header of fixed size, which contains the length of the rest. A connection delivers
 * them in pieces of any size; this file assembles the parts that a protocol's handler needs. */
#ifndef HOWDAH_SNAPSHOT_SESSIONS_PACKETS_H
#define HOWDAH_SNAPSHOT_SESSIONS_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_HEAD 5
/* Maximum number of bytes of a packet's content that are kept until its end. */
#define PACKET_START 128

struct tap;

/* Packets of one direction. */
typedef struct packet_stream {
    unsigned char head[PACKET_HEAD];
    uint8_t n_head;
    bool goes_on; /* MySQL: the previous packet had the maximum length, so this one continues it */
    uint8_t part; /* PostgreSQL: number of complete texts, in messages that contain several */
    uint32_t left;
    size_t taken; /* bytes of the packet's content so far */
    unsigned char start[PACKET_START];
} packet_stream;

/* The protocol's handler; `sent`: by the client. */
typedef struct packet_protocol {
    uint8_t head_size;
    /* Called when the header is complete: sets `left`. True when nothing follows. */
    bool (*begin)(struct tap *t, packet_stream *stream, bool sent);
    /* Handles a part of the content; `taken` bytes came before. */
    void (*content)(struct tap *t, packet_stream *stream, bool sent, const char *data, size_t length);
    /* Sets `n_head` to 0. */
    void (*end)(struct tap *t, packet_stream *stream, bool sent);
} packet_protocol;

void packets_take(struct tap *t, const packet_protocol *protocol, packet_stream *stream, bool sent, const char *data,
                  size_t length);

#endif
