/* What the library's connection pools need from C: their numbers for the server. */
#ifndef HOWDAH_ASYNC_POOLS_POOLS_H
#define HOWDAH_ASYNC_POOLS_POOLS_H

#include "shim.h"

void async_pools_class_startup(void);
/* Writes the numbers of all connection pools to where the server looks for them. */
void async_pools_publish(void);
/* Where a declared property lies in the objects of a class. */
uint32_t async_property(const zend_class_entry *class_type, const char *name);

#endif
