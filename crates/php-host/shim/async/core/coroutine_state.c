/* State of the running code, not of the request, that PHP's own switch of fibers does not save: a pending exception,
 * the nesting of output buffers, comparison functions of a running sort. It is a list of variables in PHP's globals, so
 * that saving is copying.
 *
 * Not listed, because zend_fiber_switch_context() handles them: VM stack, current frame, error_reporting, bailout
 * target, active fiber, observers. */
#include "async/core/coroutine_state.h"

#include "shim.h"
#include "async/core/coroutine.h"
#include "globals/extensions.h"
#include "globals/libraries.h"
#include "async/isolation/swap_list.h"

#include <ext/json/php_json.h>
#include <ext/pcre/php_pcre.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/file.h>
#include <stdlib.h>
#include <string.h>

#define PLACE(variable)                                                                                                \
    { &(variable), sizeof(variable) }

static const struct {
    void *at;
    size_t size;
} of_the_engine[] = {
    /* A destructor that runs while an exception unwinds may wait. */
    PLACE(EG(exception)),
    PLACE(EG(prev_exception)),
    PLACE(EG(opline_before_exception)),
    /* Set by C code around calls into PHP (constructors that throw, property updates). */
    PLACE(EG(error_handling)),
    PLACE(EG(exception_class)),
    PLACE(EG(fake_scope)),
    PLACE(EG(filename_override)),
    PLACE(EG(lineno_override)),
    /* The buffers of ob_start(), and the one whose callback is running. */
    PLACE(output_globals),
    /* usort() while its comparison waits; serialize() and unserialize() while a magic method does. */
    PLACE(BG(user_compare_fci)),
    PLACE(BG(user_compare_fci_cache)),
    PLACE(BG(serialize_lock)),
    PLACE(BG(serialize)),
    PLACE(BG(unserialize)),
    /* Messages collected by fopen('http://…'), and the exit status that pclose() found. */
    PLACE(FG(wrapper_errors)),
    PLACE(FG(user_stream_current_filename)),
    PLACE(FG(pclose_ret)),
    PLACE(FG(pclose_wait)),
#ifdef HAVE_GETHOSTBYNAME_R
    /* Result of gethostbyname() while it waits; another coroutine's call would free it. */
    PLACE(FG(tmp_host_info)),
    PLACE(FG(tmp_host_buf)),
    PLACE(FG(tmp_host_buf_len)),
#endif
    /* Results of json_last_error() and preg_last_error(). */
    PLACE(JSON_G(error_code)),
    PLACE(PCRE_G(error_code)),
    /* Statements since the last tick. */
    PLACE(EG(ticks_count)),
};
/* These variables, then, if the extensions are loaded, the errors of socket_last_error() and posix_get_last_error(),
 * and the variables of globals/extensions.c. */
static swap_list all;

static const char *const extensions_with_errors[] = {"sockets", "posix"};

/* State of the worker's main context when it began to serve. */
static unsigned char blank[1536];
/* True while `blank` is installed: the coroutine that ran last has ended. */
static bool blank_in_place;

static void add(void *at, size_t size) {
    swap_list_add(&all, at, size);
}

/* May be called before serving begins: a script may start coroutines while it boots. */
size_t coroutine_state_size(void) {
    if (all.n_words == 0) {
        for (size_t i = 0; i < sizeof of_the_engine / sizeof *of_the_engine; i++) {
            add(of_the_engine[i].at, of_the_engine[i].size);
        }
        for (size_t i = 0; i < sizeof extensions_with_errors / sizeof *extensions_with_errors; i++) {
            int *last_error = globals_last_error_of(extensions_with_errors[i]);
            if (last_error != NULL) {
                add(last_error, sizeof *last_error);
            }
        }
        globals_extensions_running_places(add);
    }
    return swap_list_size(&all);
}

void coroutine_state_save(unsigned char *image) {
    swap_list_save(&all, image);
}

void coroutine_state_load(const unsigned char *image) {
    blank_in_place = false;
    swap_list_load(&all, image);
}

typedef struct output {
    const char *data;
    size_t length;
} output;

static void print(void *argument) {
    const output *text = argument;
    php_output_write(text->data, text->length);
}

bool coroutine_state_print(unsigned char *image, const char *data, size_t length) {
    unsigned char own[sizeof output_globals];
    _Static_assert(sizeof output_globals % 8 == 0, "in one piece in an image");
    unsigned char *theirs = image + swap_list_offset(&all, &output_globals);
    memcpy(own, &output_globals, sizeof own);
    memcpy(&output_globals, theirs, sizeof output_globals);
    bool possible = OG(running) == NULL && (OG(flags) & PHP_OUTPUT_ACTIVATED) != 0;
    if (possible) {
        /* A callback of the buffers may end in a fatal error; this coroutine then continues to its own end. */
        coroutine_guarded(print, &(output){data, length});
        memcpy(theirs, &output_globals, sizeof output_globals);
    }
    memcpy(&output_globals, own, sizeof own);
    return possible;
}

void coroutine_state_startup(void) {
    if (coroutine_state_size() > sizeof blank) {
        abort(); /* a newer PHP with larger structures: any test of the mode hits this */
    }
    coroutine_state_save(blank);
}

void coroutine_state_begin(void) {
    if (!blank_in_place) {
        swap_list_load(&all, blank);
    }
    blank_in_place = false;
#ifdef HAVE_GETHOSTBYNAME_R
    FG(tmp_host_buf) = NULL;
#endif
    EG(ticks_count) = 0;
    globals_extensions_running_begin();
    php_output_activate();
}

void coroutine_state_end(void) {
    /* This makes PHP send the headers; they belong to the request, which may continue. */
    unsigned char sent = SG(headers_sent);
    SG(headers_sent) = 1;
    php_output_deactivate();
    SG(headers_sent) = sent;
#ifdef HAVE_GETHOSTBYNAME_R
    free(FG(tmp_host_buf));
#endif
    globals_extensions_running_end();
    /* Hides the coroutine's state from the scheduler. */
    swap_list_load(&all, blank);
    blank_in_place = true;
}
