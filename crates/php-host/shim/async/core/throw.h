/* Exceptions of the PHP library of async mode. */
#ifndef HOWDAH_ASYNC_CORE_THROW_H
#define HOWDAH_ASYNC_CORE_THROW_H

/* Throws one of the library's exceptions by its short name. */
void async_throw(const char *name, const char *message);
/* Throws CancelledException in the current coroutine, which was cancelled. */
void async_throw_cancelled(void);

#endif
