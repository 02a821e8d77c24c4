#include "async/core/questions.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "async/core/throw.h"

#include <unistd.h>

/* Number of questions that may be unanswered: MAX_QUESTIONS of transport/questions.rs. */
#define MAX_QUESTIONS 16

/* A coroutine that waits for an answer; on its stack. */
typedef struct question {
    coroutine *owner;
    /* The answer; -1: it has not arrived. */
    int file;
} question;

/* The unanswered questions, a ring, as the server answers in their order. NULL: its coroutine was cancelled. */
static question *unanswered[MAX_QUESTIONS];
static unsigned oldest, count;

/* A coroutine that waits to ask; on its stack. */
typedef struct turn {
    coroutine *owner;
    struct turn *next;
} turn;

static turn *turns;

bool async_question_turn(void) {
    while (count == MAX_QUESTIONS) {
        turn mine = {.owner = coroutine_current};
        turn **at = &turns;
        while (*at != NULL) {
            at = &(*at)->next;
        }
        *at = &mine;
        coroutine_woken woken = coroutine_wait(COROUTINE_FOREVER, "question");
        for (at = &turns; *at != &mine; at = &(*at)->next) {
        }
        *at = mine.next;
        /* This one may have been woken for the next as well. */
        if (turns != NULL && count < MAX_QUESTIONS) {
            coroutine_wake(turns->owner, COROUTINE_WOKEN);
        }
        if (woken == COROUTINE_CANCELLED) {
            async_throw_cancelled();
            return false;
        }
    }
    return true;
}

int async_question_ask(void) {
    if (!howdah_rs_live_ask_later()) {
        return -1;
    }
    question mine = {.owner = coroutine_current, .file = -1};
    unsigned at = (oldest + count++) % MAX_QUESTIONS;
    unanswered[at] = &mine;
    coroutine_woken woken = coroutine_wait(COROUTINE_FOREVER, "answer");
    if (mine.file < 0) {
        unanswered[at] = NULL;
    }
    if (woken == COROUTINE_CANCELLED) {
        if (mine.file >= 0) {
            close(mine.file);
        }
        async_throw_cancelled();
        return -1;
    }
    return mine.file;
}

void async_question_answered(int file) {
    question *answered = unanswered[oldest];
    unanswered[oldest] = NULL;
    oldest = (oldest + 1) % MAX_QUESTIONS;
    count--;
    if (answered != NULL) {
        answered->file = file;
        coroutine_wake(answered->owner, COROUTINE_WOKEN);
    } else {
        close(file);
    }
    if (turns != NULL) {
        coroutine_wake(turns->owner, COROUTINE_WOKEN);
    }
}
