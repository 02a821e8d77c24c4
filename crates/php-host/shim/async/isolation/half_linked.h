/* Classes that a fatal error has left in the middle of their linking. */
#ifndef HOWDAH_ASYNC_ISOLATION_HALF_LINKED_H
#define HOWDAH_ASYNC_ISOLATION_HALF_LINKED_H

/* Restores them for the next link: to be called after a bailout. */
void async_mend_half_linked_classes(void);

#endif
