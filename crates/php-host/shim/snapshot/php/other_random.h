/* Random generators of libraries other than PHP and OpenSSL. */
#ifndef HOWDAH_SNAPSHOT_PHP_OTHER_RANDOM_H
#define HOWDAH_SNAPSHOT_PHP_OTHER_RANDOM_H

/* Called before the snapshot: finds the generators that are in use. */
void shim_snapshot_other_random_forget(void);

/* Called at the start of each request: makes their output from now on differ from all earlier output. */
void shim_snapshot_other_random_renew(void);

#endif
