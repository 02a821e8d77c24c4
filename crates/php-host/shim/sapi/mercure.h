/* mercure_publish(). */
#ifndef HOWDAH_SAPI_MERCURE_H
#define HOWDAH_SAPI_MERCURE_H

#include "shim.h"

/* Returns true if a publisher may use this id; otherwise throws an error about this argument. */
bool mercure_is_id(const zend_string *id, uint32_t argument);

#endif
