/* Meaning of a statement's words. For session_sql.c, which finds the words. */
#ifndef HOWDAH_SQL_STATEMENT_H
#define HOWDAH_SQL_STATEMENT_H

#include "sql/session_sql.h"

/* Records a change that the text leaves behind. */
void sql_found(session_sql *s, session_change change);
/* Called when the word in `s->word` is complete. */
void sql_end_word(session_sql *s);
void sql_end_statement(session_sql *s);

#endif
