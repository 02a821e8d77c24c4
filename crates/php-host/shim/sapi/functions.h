/* The functions of every mode, and the extension that registers them. */
#ifndef HOWDAH_SAPI_FUNCTIONS_H
#define HOWDAH_SAPI_FUNCTIONS_H

#include "shim.h"

extern zend_module_entry shim_module;
/* Writes a line to the server's log: the message, followed by `context` as JSON. */
void shim_log_with_context(int level, const zend_string *message, HashTable *context);

#endif
