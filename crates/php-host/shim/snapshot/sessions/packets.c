/* Assembles packets, see packets.h. */
#include "snapshot/sessions/packets.h"

#include "snapshot/sessions/tap.h"

#include <string.h>

static void save_start(packet_stream *stream, const char *data, size_t length) {
    if (stream->taken < sizeof stream->start) {
        size_t fits = sizeof stream->start - stream->taken;
        memcpy(stream->start + stream->taken, data, length < fits ? length : fits);
    }
}

void packets_take(tap *t, const packet_protocol *protocol, packet_stream *stream, bool sent, const char *data,
                  size_t length) {
    while (length > 0 && !t->opaque) {
        if (stream->n_head < protocol->head_size) {
            stream->head[stream->n_head++] = (unsigned char)*data++;
            length--;
            if (stream->n_head == protocol->head_size && protocol->begin(t, stream, sent)) {
                protocol->end(t, stream, sent);
            }
            continue;
        }
        size_t part = length < stream->left ? length : stream->left;
        save_start(stream, data, part);
        protocol->content(t, stream, sent, data, part);
        stream->taken += part;
        stream->left -= (uint32_t)part;
        data += part;
        length -= part;
        if (stream->left == 0) {
            protocol->end(t, stream, sent);
        }
    }
}
