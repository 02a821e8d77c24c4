/* Stands in for a library that is unrelated to PHP. */
#include <poll.h>

int other_poll(void) {
    return poll(0, 0, 0);
}
