/* Texts that the server sends in a descriptor. */
#ifndef HOWDAH_SAPI_ANSWER_H
#define HOWDAH_SAPI_ANSWER_H

#include "shim.h"

/* Reads the whole text from a descriptor and closes it. NULL if it is empty or cannot be read. */
zend_string *shim_answer(int file);

#endif
