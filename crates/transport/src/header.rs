//! Renders `wire.h`, the C view of `wire.rs`. The committed copy is compared with this in a test, so the two cannot differ.

use crate::wire;
use std::fmt::Write;

/// The text of `crates/php-host/shim/wire.h`.
#[must_use]
pub fn render() -> String {
    let mut out = String::from(PREFACE);
    let numbers = [
        ("HOWDAH_WIRE_VERSION", wire::WIRE_VERSION),
        ("CALL_HEAD_ONLY", wire::CALL_HEAD_ONLY),
        ("CALL_BODY_INLINE", wire::CALL_BODY_INLINE),
        ("CALL_BODY_FD", wire::CALL_BODY_FD),
        ("CANCEL_CLIENT_GONE", wire::CANCEL_CLIENT_GONE),
        ("CANCEL_DEADLINE", wire::CANCEL_DEADLINE),
    ];
    for (name, value) in numbers {
        let _ = writeln!(out, "#define {name} {value}u");
    }
    let _ = writeln!(out, "\n/* What a worker tells about its connection pools. */");
    let _ = writeln!(out, "#define POOL_SLOTS {}", wire::POOL_SLOTS);
    let _ = writeln!(out, "#define POOL_NAME_LEN {}", wire::POOL_NAME_LEN);
    let _ = writeln!(out, "typedef enum pool_number {{");
    for name in wire::POOL_NUMBER_NAMES {
        let _ = writeln!(out, "    {name},");
    }
    let _ = writeln!(out, "    POOL_NUMBERS\n}} pool_number;");
    let _ = writeln!(out, "\n/* Variables that travel as a number: X(number, name). */");
    let _ = writeln!(out, "#define HOWDAH_VAR_COUNT {}", wire::VAR_NAMES.len());
    out.push_str("#define HOWDAH_VAR_NAMES(X)");
    for (i, name) in wire::VAR_NAMES.iter().enumerate() {
        let _ = write!(out, " \\\n    X({}, {name})", i + 1);
    }
    out.push_str("\n\n");
    let sizes = [
        ("StrRef", size_of::<wire::StrRef>()),
        ("WireVar", size_of::<wire::WireVar>()),
        ("WireCall", size_of::<wire::WireCall>()),
    ];
    for (name, size) in sizes {
        let _ = writeln!(out, "_Static_assert(sizeof({name}) == {size}, \"{name} differs from wire.rs\");");
    }
    out.push_str("\n#endif\n");
    out
}

const PREFACE: &str = "\
/* Generated from crates/transport/src/wire.rs by `make generate`; a test compares the two. Do not edit.
 * The C view of a call in the request ring: see wire.rs for what each field means. */
/* clang-format off */
#ifndef HOWDAH_WIRE_H
#define HOWDAH_WIRE_H

#include <stdint.h>

typedef struct StrRef {
    uint32_t off, len; /* from the start of the string area; NUL behind it */
} StrRef;

typedef struct WireVar {
    uint32_t name_id; /* 0: the name is spelled out in `name` */
    StrRef name, value;
} WireVar;

typedef struct WireCall {
    uint64_t number, id, received_unix_us, body_len;
    uint32_t flags, proto, n_vars, strings_len;
    StrRef method, script, uri, query, content_type, cookie, authorization;
} WireCall;

";

#[cfg(test)]
mod tests {
    /// `HOWDAH_GENERATE=1 cargo test -p howdah-transport` writes the file (this is `make generate`).
    #[test]
    fn committed_header_matches_the_rust_definition() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../php-host/shim/wire.h");
        let fresh = super::render();
        if std::env::var_os("HOWDAH_GENERATE").is_some() {
            std::fs::write(path, &fresh).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(committed, fresh, "run `make generate`");
    }
}
