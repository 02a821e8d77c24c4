/* Random generators of other libraries than PHP and OpenSSL. */
#ifndef HOWDAH_SNAPSHOT_PHP_OTHER_RANDOM_H
#define HOWDAH_SNAPSHOT_PHP_OTHER_RANDOM_H

/* Before the snapshot: finds the generators that are in use. */
void shim_snapshot_other_random_forget(void);

/* At the start of each request: what they give from now on has not been given before. */
void shim_snapshot_other_random_renew(void);

#endif
