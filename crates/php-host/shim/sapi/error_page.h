/* The page that a developer sees instead of a failed response: see error_page.c. */
#ifndef HOWDAH_SAPI_ERROR_PAGE_H
#define HOWDAH_SAPI_ERROR_PAGE_H

/* Called after PHP's modules have started, and again for each request that they begin, because Xdebug installs its own
 * error function then. Does nothing in a pool that shows no such pages. */
void shim_error_page_begin(void);
/* Called when the script has ended, after its shutdown functions and before its output is flushed. */
void shim_error_page_send(void);
/* Called when the script has ended. Runs its shutdown functions first, if there is an error to show. */
void shim_error_page_end_script(void);

#endif
