/* The request in the form that PHP reads: request_info, body, cookies, time and getenv(). $_SERVER is in
 * server_array.c. */
#include "sapi/input.h"

#include "shim.h"
#include "modes/opcache_clock.h"

#include <string.h>

#define KNOWN_NAME(number, name) [number] = {#name, sizeof(#name) - 1},
const shim_known_name shim_known_names[HOWDAH_VAR_COUNT + 1] = {HOWDAH_VAR_NAMES(KNOWN_NAME)};

/* A private copy of a query string that PHP wants to write to; its memory is reused. */
static char *query_copy;
static size_t query_copy_size;

void shim_input_shutdown(void) {
    free(query_copy);
    query_copy = NULL;
    query_copy_size = 0;
}

static bool is_known_variable(const WireVar *var) {
    return var->name_id != 0 && var->name_id <= HOWDAH_VAR_COUNT;
}

const char *shim_var_name(const WireVar *var, size_t *length) {
    if (is_known_variable(var)) {
        *length = shim_known_names[var->name_id].length;
        return shim_known_names[var->name_id].text;
    }
    *length = var->name.len;
    return shim_text(var->name);
}

/* Index of each known variable in shim.vars, plus one; 0: absent. Filled at the first look-up of a request, as most
 * look-ups are for variables that the request lacks. */
static uint32_t places[HOWDAH_VAR_COUNT + 1];

/* True if a variable was transferred with its name as text, which may be a known name. Names that begin with H, as
 * those of request headers do, do not count: they are never looked up here. */
static bool some_by_text;

static void find_places(void) {
    memset(places, 0, sizeof places);
    some_by_text = false;
    for (uint32_t i = 0; i < shim.request->n_vars; i++) {
        const WireVar *var = &shim.vars[i];
        if (is_known_variable(var)) {
            places[var->name_id] = i + 1;
        } else if (shim_text(var->name)[0] != 'H') {
            some_by_text = true;
        }
    }
    shim.places_known = true;
}

/* The last variable with a name counts, as in an array. */
const char *shim_known_var(shim_var number, size_t *value_len) {
    *value_len = 0;
    if (shim.request == NULL) {
        return NULL;
    }
    if (!shim.places_known) {
        find_places();
    }
    uint32_t place = places[number];
    const shim_known_name *name = &shim_known_names[number];
    for (uint32_t i = some_by_text ? shim.request->n_vars : place; i > place; i--) {
        const WireVar *var = &shim.vars[i - 1];
        if (var->name_id == 0 && var->name.len == name->length &&
            memcmp(shim_text(var->name), name->text, name->length) == 0) {
            place = i;
        }
    }
    if (place == 0) {
        return NULL;
    }
    *value_len = shim.vars[place - 1].value.len;
    return shim_text(shim.vars[place - 1].value);
}

/* PHP's register_argc_argv cuts the query string in place at each '+' and restores it afterwards. The lane's memory
 * must not be written to. */
static char *writable_query(void) {
    const char *query = shim_text(shim.request->query);
    size_t size = (size_t)shim.request->query.len + 1;
    if (memchr(query, '+', size) == NULL) {
        return (char *)query;
    }
    if (size > query_copy_size) {
        free(query_copy);
        query_copy = malloc(size);
        query_copy_size = query_copy != NULL ? size : 0;
    }
    return query_copy != NULL ? memcpy(query_copy, query, size) : NULL;
}

void shim_input_prepare(void) {
    const WireRequest *request = shim.request;
    SG(server_context) = (void *)request;
    SG(request_info).request_method = shim_text(request->method);
    SG(request_info).query_string = writable_query();
    SG(request_info).path_translated = (char *)shim_text(request->script);
    /* As with FPM this is the script's name, not the request's target. */
    size_t length;
    SG(request_info).request_uri = (char *)shim_known_var(SHIM_VAR_SCRIPT_NAME, &length);
    SG(request_info).content_type = shim_text(request->content_type);
    SG(request_info).content_length = (zend_long)request->body_len;
    SG(sapi_headers).http_response_code = 200;
    php_handle_auth_data(request->authorization.len != 0 ? shim_text(request->authorization) : NULL);
}

void shim_input_release(void) {
    SG(server_context) = NULL;
    SG(request_info).request_method = NULL;
    SG(request_info).query_string = NULL;
    SG(request_info).path_translated = NULL;
    SG(request_info).request_uri = NULL;
    SG(request_info).content_type = NULL;
    SG(request_info).content_length = 0;
}

/* True if PHP has refused the body for its length and has reported that. */
static bool was_refused_by_php(uint64_t length) {
    return SG(post_max_size) > 0 && length > (uint64_t)SG(post_max_size) && PG(enable_post_data_reading);
}

SHIM_EXPORT uint64_t howdah_c_form_limit(void) {
    return PG(enable_post_data_reading) && SG(post_max_size) > 0 ? (uint64_t)SG(post_max_size) : 0;
}

size_t shim_sapi_read_post(char *buffer, size_t size) {
    const WireRequest *request = shim.request;
    /* Settings of this request allow what PHP's own refuse (.user.ini, .htaccess, [PATH=]), which the server did not
     * know. The application must not mistake the dropped body for an empty form. */
    if (request != NULL && (request->flags & REQUEST_BODY_DROPPED) != 0 && !was_refused_by_php(request->body_len)) {
        php_error_docref(NULL, E_WARNING,
                         "The form of " ZEND_ULONG_FMT " bytes exceeds the post_max_size that PHP was started with, "
                         "and was dropped",
                         (zend_ulong)request->body_len);
        return 0;
    }
    size_t total = 0;
    while (total < size && !shim.script_child) {
        size_t length = howdah_rs_read_body(buffer + total, size - total);
        if (length == 0) {
            break;
        }
        total += length;
    }
    return total;
}

char *shim_sapi_read_cookies(void) {
    return shim.request->cookie.len != 0 ? (char *)shim_text(shim.request->cookie) : NULL;
}

char *shim_sapi_getenv(const char *name, size_t name_len) {
    for (uint32_t i = shim.request != NULL ? shim.request->n_vars : 0; i-- > 0;) {
        size_t length;
        const char *candidate = shim_var_name(&shim.vars[i], &length);
        if (length == name_len && memcmp(candidate, name, name_len) == 0) {
            return (char *)shim_text(shim.vars[i].value);
        }
    }
    return NULL;
}

zend_result shim_sapi_request_time(double *time) {
    if (shim.request == NULL) {
        return shim_opcache_clock_probes(time) ? SUCCESS : FAILURE;
    }
    *time = (double)shim.request->received_unix_us / 1e6;
    return SUCCESS;
}
