/* The page that a developer sees in place of a response that failed: see error_page.c. */
#ifndef HOWDAH_SAPI_ERROR_PAGE_H
#define HOWDAH_SAPI_ERROR_PAGE_H

/* After PHP's modules have started, and again for each request that they begin: Xdebug replaces this error function by
 * its own then. Does nothing in a pool that shows no such pages. */
void shim_error_page_begin(void);
/* The script is over, its shutdown functions have run, its output has not been flushed yet. */
void shim_error_page_send(void);
/* The script is over. Runs its shutdown functions first, if there is an error to show. */
void shim_error_page_end_script(void);

#endif
