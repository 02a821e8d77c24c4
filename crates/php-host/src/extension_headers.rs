//! Headers of PHP extensions with which the shim is compiled if they are installed. One table for the build script,
//! which looks for them and defines macros for the C files (`-DSHIM_WITH_PDO=1`), and for `--capabilities`, which
//! reports them.

/// One extension's header.
pub(crate) struct ExtensionHeader {
    pub(crate) extension: &'static str,
    /// Path below one of PHP's include directories.
    pub(crate) path: &'static str,
    /// Features of async mode that do not work without it.
    pub(crate) without: &'static str,
}

pub(crate) const EXTENSION_HEADERS: &[ExtensionHeader] = &[
    ExtensionHeader {
        extension: "mbstring",
        path: "ext/mbstring/mbstring.h",
        without: "encodings set by mb_internal_encoding() and similar functions leak from one request to others",
    },
    ExtensionHeader {
        extension: "mysqli",
        path: "ext/mysqli/php_mysqli_structs.h",
        without: "connection pools do not notice an open transaction of a mysqli connection",
    },
    ExtensionHeader {
        extension: "pdo",
        path: "ext/pdo/php_pdo_driver.h",
        without: "two coroutines may use a PDO connection at once, as its statements are not tracked",
    },
];

/// The Debian package with the headers for this version of PHP.
pub(crate) fn package(php_version: &str) -> String {
    let short: Vec<&str> = php_version.splitn(3, '.').take(2).collect();
    format!("php{}-dev", short.join("."))
}
