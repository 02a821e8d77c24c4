/* The current request in the form that PHP reads: variables, body, cookies. */
#ifndef HOWDAH_SAPI_INPUT_H
#define HOWDAH_SAPI_INPUT_H

#include "shim.h"

/* Name of a variable that is transferred as a number. */
typedef struct shim_known_name {
    const char *text;
    size_t length;
} shim_known_name;
extern const shim_known_name shim_known_names[HOWDAH_VAR_COUNT + 1];
/* SHIM_VAR_SCRIPT_NAME and so on. */
#define SHIM_VAR_NUMBER(number, name) SHIM_VAR_##name = (number),
typedef enum shim_var { HOWDAH_VAR_NAMES(SHIM_VAR_NUMBER) } shim_var;

void shim_input_shutdown(void);
/* Returns the value of a variable of the current request, NUL-terminated, or NULL and length 0. Valid until the request
 * is done. */
const char *shim_known_var(shim_var number, size_t *value_len);
/* Returns the name of a variable of the current request. */
const char *shim_var_name(const WireVar *var, size_t *length);
/* Returns a string of the current request, NUL-terminated; "" for an absent one. */
static inline const char *shim_text(StrRef ref) {
    return ref.len != 0 ? shim.strings + ref.off : "";
}
/* Fills SG(request_info) from the current request; clears it. */
void shim_input_prepare(void);
void shim_input_release(void);

size_t shim_sapi_read_post(char *buffer, size_t size);
char *shim_sapi_read_cookies(void);
char *shim_sapi_getenv(const char *name, size_t name_len);
zend_result shim_sapi_request_time(double *time);

#endif
