/* Classes whose linking was interrupted by a fatal error. */
#ifndef HOWDAH_ASYNC_ISOLATION_HALF_LINKED_H
#define HOWDAH_ASYNC_ISOLATION_HALF_LINKED_H

/* Restores them for the next link; must be called after a bailout. */
void async_mend_half_linked_classes(void);

#endif
