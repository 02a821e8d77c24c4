/* Texts that the server sends in a descriptor. */
#ifndef HOWDAH_SAPI_DESCRIPTOR_TEXT_H
#define HOWDAH_SAPI_DESCRIPTOR_TEXT_H

#include "shim.h"

/* Reads the whole text from a descriptor and closes it. NULL if it is empty or cannot be read. */
zend_string *shim_read_text(int file);

#endif
