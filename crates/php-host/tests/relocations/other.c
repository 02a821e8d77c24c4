/* Stands for a library that has nothing to do with PHP. */
#include <poll.h>

int other_poll(void) {
    return poll(0, 0, 0);
}
