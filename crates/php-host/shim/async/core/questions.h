/* Coroutines that wait for the server's answer to a question. */
#ifndef HOWDAH_ASYNC_CORE_QUESTIONS_H
#define HOWDAH_ASYNC_CORE_QUESTIONS_H

#include "shim.h"

/* Waits until a question may be sent: the number of unanswered ones is limited. False: throws CancelledException. */
bool async_question_turn(void);
/* Sends the question that was begun with howdah_rs_live_begin(), and parks the coroutine until its answer arrives: a
 * descriptor that the caller closes. -1: throws CancelledException, or, without an exception, the server cannot be
 * asked. Only after async_question_turn(), without a wait in between. */
int async_question_ask(void);
/* Delivers the answer to the oldest unanswered question. */
void async_question_answered(int file);

#endif
