/* Classes that a fatal error has left in the middle of their linking. */
#ifndef HOWDAH_ASYNC_ISOLATION_HALF_LINKED_H
#define HOWDAH_ASYNC_ISOLATION_HALF_LINKED_H

/* Makes them what they were for whoever links them: to be called after a bailout. */
void async_mend_half_linked_classes(void);

#endif
