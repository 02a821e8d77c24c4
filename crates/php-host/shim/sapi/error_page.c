/* Only for `howdah dev`: a script that ends with an error gets a page instead of PHP's message.
 *
 * PHP's own error function gets an error only if no handler of the application took it, so nothing changes for an
 * application with handlers. The message is recorded (howdah_rs_error_note) and not printed. At the end of the script,
 * shutdown functions included, the page is sent unless a part of the response has already been sent, or the application
 * itself has responded after the error, with output or a redirect: then that stays. */
#include "sapi/error_page.h"

#include "shim.h"
#include "modes/mode.h"
#include "sapi/input.h"

#include <ext/standard/basic_functions.h>

#define FATAL (E_ERROR | E_CORE_ERROR | E_COMPILE_ERROR | E_PARSE | E_RECOVERABLE_ERROR | E_USER_ERROR)
/* In bytes, for building the page in a script that has used up its own limit. PHP resets its limit at the request's
 * end. */
#define MEMORY_FOR_PAGE (16 * 1024 * 1024)
#define MAX_STACK 16384

static void (*original_error)(int type, zend_string *file, const uint32_t line, zend_string *message);
/* The value of display_errors, which is off while the page shows the error instead. */
static zend_uchar displays;
static bool hidden;

/* Amount of output in PHP's buffers, in bytes. */
static uint64_t held_output(void) {
    uint64_t held = 0;
    int levels = zend_stack_count(&OG(handlers));
    php_output_handler **handlers = zend_stack_base(&OG(handlers));
    for (int i = 0; i < levels; i++) {
        held += handlers[i]->buffer.used;
    }
    return held;
}

static const char *kind_of(int type) {
    switch (type) {
    case E_PARSE:
        return "Parse error";
    case E_RECOVERABLE_ERROR:
        return "Recoverable fatal error";
    default:
        return "Fatal error";
    }
}

static void enable_display(void) {
    if (hidden) {
        hidden = false;
        PG(display_errors) = displays;
    }
}

static void note_error(int type, zend_string *file, const uint32_t line, zend_string *message) {
    bool shown_as_page = (type & FATAL) != 0 && shim.request != NULL && !shim.response_ended && !shim.script_child &&
                         !SG(headers_sent) && !SG(request_info).no_headers;
    if (shown_as_page) {
        char stack[MAX_STACK];
        size_t stack_len = howdah_c_dump_stack(stack, sizeof stack);
        const char *kind = kind_of(type & E_ALL);
        howdah_rs_error_note((howdah_error){
            .kind = kind,
            .kind_len = strlen(kind),
            .message = ZSTR_VAL(message),
            .message_len = ZSTR_LEN(message),
            .file = file != NULL ? ZSTR_VAL(file) : "",
            .file_len = file != NULL ? ZSTR_LEN(file) : 0,
            .line = line,
            .stack = stack,
            .stack_len = stack_len,
            .held_output = held_output(),
        });
        if (!hidden) {
            hidden = true;
            displays = PG(display_errors);
        }
        PG(display_errors) = 0;
    }
    /* Does not return from most fatal errors: display_errors is then restored with the page. */
    original_error(type, file, line, message);
    if (shown_as_page) {
        enable_display();
    }
}

void shim_error_page_begin(void) {
    if (shim.worker->error_pages && zend_error_cb != note_error) {
        original_error = zend_error_cb;
        zend_error_cb = note_error;
    }
}

/* True if the application itself responds: with its own error page, or a redirect. */
static bool application_responds(uint64_t held_before) {
    uint64_t held = held_output();
    int status = SG(sapi_headers).http_response_code;
    return SG(headers_sent) || shim.response_ended || (held != held_before && held > 0) ||
           (status >= 300 && status < 400);
}

/* The script's headers described a different body. */
static void forget_head(void) {
    zend_llist_clean(&SG(sapi_headers).headers);
    if (SG(sapi_headers).mimetype != NULL) {
        efree(SG(sapi_headers).mimetype);
        SG(sapi_headers).mimetype = NULL;
    }
    if (SG(sapi_headers).http_status_line != NULL) {
        efree(SG(sapi_headers).http_status_line);
        SG(sapi_headers).http_status_line = NULL;
    }
    SG(sapi_headers).http_response_code = 500;
}

static void send_page(void) {
    for (uint32_t i = 0; i < shim.request->n_vars; i++) {
        size_t length;
        const char *name = shim_var_name(&shim.vars[i], &length);
        howdah_rs_error_variable(name, length, shim_text(shim.vars[i].value), shim.vars[i].value.len);
    }
    char server[128];
    int server_len = (snprintf)(server, sizeof server, "PHP %s, %s mode", shim_compat_php_version(), shim.mode->name);
    const char *head, *body;
    size_t head_len, body_len;
    howdah_rs_error_page(server, (size_t)server_len, &head, &head_len, &body, &body_len);
    zend_set_memory_limit(zend_memory_usage(true) + MEMORY_FOR_PAGE);
    php_output_discard_all();
    forget_head();
    static const char no_store[] = "Cache-Control: no-store";
    /* The page contains no scripts, and browser extensions must not add any. */
    static const char policy[] = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'";
    sapi_add_header_ex((char *)head, head_len, true, true);
    sapi_add_header_ex((char *)no_store, sizeof no_store - 1, true, true);
    sapi_add_header_ex((char *)policy, sizeof policy - 1, true, true);
    php_output_write(body, body_len);
}

void shim_error_page_send(void) {
    uint64_t held_before;
    if (original_error == NULL || shim.request == NULL || !howdah_rs_error_noted(&held_before)) {
        return;
    }
    enable_display();
    if (!application_responds(held_before)) {
        send_page();
    }
    howdah_rs_error_forget();
}

void shim_error_page_end_script(void) {
    uint64_t held_before;
    if (original_error == NULL || shim.request == NULL || !howdah_rs_error_noted(&held_before)) {
        return;
    }
    /* As php_request_shutdown() does, which then finds no shutdown functions left. */
    EG(flags) |= EG_FLAGS_IN_SHUTDOWN;
    EG(current_execute_data) = NULL;
    zend_try {
        php_call_shutdown_functions();
    }
    zend_end_try();
    zend_try {
        php_free_shutdown_functions();
    }
    zend_end_try();
    zend_try {
        shim_error_page_send();
    }
    zend_end_try();
}
