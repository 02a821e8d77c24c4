/* mercure_publish(). */
#ifndef HOWDAH_SAPI_MERCURE_H
#define HOWDAH_SAPI_MERCURE_H

#include "shim.h"

/* True if a publisher may give this id; otherwise throws, naming the argument. */
bool mercure_is_id(const zend_string *id, uint32_t argument);

#endif
