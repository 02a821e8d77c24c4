/* mercure_publish(). */
#ifndef HOWDAH_SAPI_MERCURE_H
#define HOWDAH_SAPI_MERCURE_H

#include "shim.h"

#endif
