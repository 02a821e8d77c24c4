//! PHP code of scenarios that is longer than a line: in separate files, where editors and `php -l` see it.

const TAG: &str = "<?php\n";

/// A file's code without its opening tag.
pub const fn code(file: &'static str) -> &'static str {
    let (tag, code) = file.split_at(TAG.len());
    assert!(matches!(tag.as_bytes(), b"<?php\n"), "the first line is the opening tag alone");
    code
}

/// Code with `__NAME__` replaced; fails if the code does not contain it.
pub fn filled(code: &str, name: &str, value: &impl std::fmt::Display) -> String {
    let hole = format!("__{name}__");
    assert!(code.contains(&hole), "{hole} is not in {code}");
    code.replace(&hole, &value.to_string())
}

/// The code of a PHP file in `php/` next to the Rust file, without its opening tag. `php!("waits/tcp.php", PORT =
/// port)` replaces `__PORT__` with the value.
#[macro_export]
macro_rules! php {
    ($path:literal $(,)?) => {
        $crate::scripts::code(include_str!(concat!("php/", $path)))
    };
    ($path:literal $(, $name:ident = $value:expr)+ $(,)?) => {{
        let code = $crate::php!($path).to_owned();
        $(let code = $crate::scripts::filled(&code, stringify!($name), &$value);)+
        code
    }};
}
