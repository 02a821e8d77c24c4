/* Stands in for one of PHP's libraries: calls libc through its import table, both by a jump slot and by an address it
 * has taken. */
#include <poll.h>
#include <unistd.h>

int call_poll(void) {
    return poll(NULL, 0, 0);
}

unsigned call_taken_address(void) {
    unsigned (*volatile taken)(unsigned) = sleep;
    return taken(0);
}
