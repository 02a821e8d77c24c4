/* The setting opcache.enable in a process that stays booted. */
#ifndef HOWDAH_MODES_OPCACHE_SWITCH_H
#define HOWDAH_MODES_OPCACHE_SWITCH_H

/* Prevents requests from changing it from now on. */
void shim_opcache_stays_on(void);

#endif
