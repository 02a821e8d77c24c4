/* The start of a request inside a resident script. */
#ifndef HOWDAH_MODES_REQUEST_START_H
#define HOWDAH_MODES_REQUEST_START_H

/* Does what php_request_startup() does for the current request, in its order and with its state. May exit by a PHP
 * bailout; the script's own state has been restored then, too. */
void shim_request_start(void);

#endif
