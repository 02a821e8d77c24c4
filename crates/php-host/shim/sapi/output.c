/* Sends the response: head, body, flush. The status follows CGI's rules, since scripts are written for them. Once the
 * client has its response (fastcgi_finish_request), output is dropped without ending the script. Once the client has
 * disconnected, the mode decides: in classic and snapshot mode PHP ends the script unless ignore_user_abort is set; in
 * worker and async mode the script continues and its output is dropped. */
#include "sapi/output.h"

#include "shim.h"
#include "modes/mode.h"

#include <string.h>
#include <strings.h>

static void refuse_response(void) {
    shim.response_refused = true;
    shim.mode->client_gone();
}

/* Passes on or discards output that no client receives. */
static void drop(const char *data, size_t length) {
    if (shim.mode->unsent_output != NULL) {
        shim.mode->unsent_output(data, length);
    }
}

size_t shim_sapi_write(const char *data, size_t length) {
    if (shim.request == NULL || shim.response_ended) {
        drop(data, length);
        return length;
    }
    if (shim.mode->takes_output != NULL && shim.mode->takes_output(data, length)) {
        return length;
    }
    if (shim.response_refused || !howdah_rs_write(data, length)) {
        refuse_response();
        return 0;
    }
    return length;
}

void shim_sapi_flush(void *server_context) {
    (void)server_context;
    if (shim.request == NULL || shim.response_ended) {
        return;
    }
    sapi_send_headers();
    if (shim.response_refused || !howdah_rs_flush()) {
        refuse_response();
    }
}

static bool header_is(const sapi_header_struct *header, const char *name, size_t name_len) {
    return header->header_len > name_len && strncasecmp(header->header, name, name_len) == 0;
}
#define HEADER_IS(header, name) header_is(header, name ":", sizeof(name))

/* A response cannot end with 1xx: that announces another one. */
static bool is_final_status(int status) {
    return status >= 200 && status <= 999;
}

/* Returns the status at the start of `text` after blanks, or 0. */
static unsigned leading_status(const char *text, const char *end) {
    while (text < end && *text == ' ') {
        text++;
    }
    int status = 0;
    for (int digits = 0; digits < 3 && text < end && *text >= '0' && *text <= '9'; digits++, text++) {
        status = status * 10 + (*text - '0');
    }
    return is_final_status(status) ? (unsigned)status : 0;
}

/* Precedence: a line header('HTTP/1.1 418 …'), then header('Status: 404 …'), then http_response_code(). */
static unsigned response_status(sapi_headers_struct *headers) {
    const char *line = headers->http_status_line;
    if (line != NULL && strncasecmp(line, "HTTP/", 5) == 0) {
        const char *blank = strchr(line, ' ');
        unsigned status = blank != NULL ? leading_status(blank, blank + strlen(blank)) : 0;
        if (status != 0) {
            return status;
        }
    }
    zend_llist_position position;
    const sapi_header_struct *header = zend_llist_get_first_ex(&headers->headers, &position);
    for (; header != NULL; header = zend_llist_get_next_ex(&headers->headers, &position)) {
        if (HEADER_IS(header, "Status")) {
            unsigned status =
                leading_status(header->header + sizeof("Status:") - 1, header->header + header->header_len);
            if (status != 0) {
                return status;
            }
        }
    }
    int code = headers->http_response_code;
    return is_final_status(code) ? (unsigned)code : 200;
}

/* The reason phrase of header('HTTP/1.1 418 I am a teapot') is sent as CGI does it, "Status: 418 I am a teapot", for
 * fronts that can use it. Most responses have none. */
static void send_reason(unsigned status, const sapi_headers_struct *headers) {
    const char *line = headers->http_status_line;
    const char *blank = line != NULL && strncasecmp(line, "HTTP/", 5) == 0 ? strchr(line, ' ') : NULL;
    if (blank == NULL || leading_status(blank, blank + strlen(blank)) != status) {
        return;
    }
    char *text;
    size_t length = spprintf(&text, 0, "Status:%s", blank);
    howdah_rs_head_line(text, length);
    efree(text);
}

/* An interim head (1xx) announces another one. */
static void send_head(unsigned status, sapi_headers_struct *headers) {
    howdah_rs_head_begin(status, status < 200);
    send_reason(status, headers);
    zend_llist_position position;
    const sapi_header_struct *header = zend_llist_get_first_ex(&headers->headers, &position);
    for (; header != NULL; header = zend_llist_get_next_ex(&headers->headers, &position)) {
        /* PHP accepts lines that are not headers, such as header('X'). */
        if (memchr(header->header, ':', header->header_len) == NULL || HEADER_IS(header, "Status")) {
            continue;
        }
        if (status == 304 && HEADER_IS(header, "Content-Type")) {
            continue;
        }
        howdah_rs_head_line(header->header, header->header_len);
    }
    howdah_rs_head_end();
}

int shim_sapi_send_headers(sapi_headers_struct *headers) {
    if (SG(request_info).no_headers || shim.request == NULL || shim.response_ended) {
        if (shim.mode->unsent_head != NULL) {
            shim.mode->unsent_head(response_status(headers), headers);
        }
        return SAPI_HEADER_SENT_SUCCESSFULLY;
    }
    send_head(response_status(headers), headers);
    return SAPI_HEADER_SENT_SUCCESSFULLY;
}

int shim_send_interim(unsigned status) {
    if (shim.request != NULL && !shim.response_ended && !SG(headers_sent)) {
        send_head(status, &SG(sapi_headers));
    }
    return SAPI_HEADER_SENT_SUCCESSFULLY;
}
