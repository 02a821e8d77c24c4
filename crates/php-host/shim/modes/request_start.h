/* The start of a request inside a script that lives on. */
#ifndef HOWDAH_MODES_REQUEST_START_H
#define HOWDAH_MODES_REQUEST_START_H

/* Does what php_request_startup() does for the current request, in its order and with its state. May leave by a PHP
 * bailout; the script's own state is back then, too. */
void shim_request_start(void);

#endif
