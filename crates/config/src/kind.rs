//! Syntax of a setting's value, for errors, the reference and the schema of `howdah.toml`.

/// Syntax of a value, for errors, the reference and the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Number,
    /// A whole number that may be negative.
    Signed,
    /// A number from 0 to 1.
    Ratio,
    /// A duration such as `"30s"`.
    Duration,
    /// A size such as `"64K"`.
    Size,
    /// Any text.
    Text,
    /// A path in the file system.
    Path,
    /// A version of PHP, or the path of a program.
    PhpProgram,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, a log service of the system, or a path.
    LogTarget(&'static [&'static str]),
    /// An address to listen on.
    Address,
    /// An address, a network or `"unix"`.
    Network,
    /// An upstream server.
    Upstream,
    /// A number of workers: `4` or `"2-8"`.
    Workers,
    /// Permissions of a file, in octal.
    Mode,
    /// A pattern of file names.
    NamePattern,
    /// The symbolic links to follow.
    Links,
    /// A host, or a pattern of hosts.
    Host,
    /// The files of a certificate.
    Certificate,
    /// A list of values of one kind.
    List(&'static Kind),
    /// A table of names and values.
    Map,
}

impl Kind {
    /// The expected syntax, in words that follow "expected".
    pub fn expected(self) -> String {
        let words = |list: &[&str]| list.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Number | Self::Signed => "a whole number".to_owned(),
            Self::Ratio => "a number from 0 to 1 (0.05)".to_owned(),
            Self::Duration => "a duration (\"500ms\", \"30s\", \"2m\", \"1h\" or a number of seconds)".to_owned(),
            Self::Size => "a size (\"64K\", \"8M\", \"1G\" or a number of bytes)".to_owned(),
            Self::Text => "text in quotes".to_owned(),
            Self::Path => "a path in quotes".to_owned(),
            Self::PhpProgram => "a version of PHP in quotes (\"8.4\"), or the path of a howdah-php".to_owned(),
            Self::Choice(list) => format!("one of {}", words(list)),
            Self::LogTarget(list) => {
                format!("{}, \"syslog:udp://HOST:PORT\", \"syslog:tcp://HOST:PORT\" or a path", words(list))
            }
            Self::Address => {
                "an address (\"127.0.0.1:8080\", \":8080\", \"https://:443\", \"[::1]:8080\", \"unix:/path\" or \
                 \"fastcgi:unix:/path\")"
                    .to_owned()
            }
            Self::Upstream => {
                "a server (\"http://127.0.0.1:3000\", \"https://host\", \"unix:/path\"), optionally followed by \" weight=2\""
                    .to_owned()
            }
            Self::Network => "an address, a network such as \"10.0.0.0/8\", or \"unix\"".to_owned(),
            Self::Workers => "a number of workers (4) or a range (\"2-8\"), at most 4096".to_owned(),
            Self::Mode => "permissions in octal and in quotes, such as \"0660\"".to_owned(),
            Self::NamePattern => "a file name's pattern without a slash, such as \"*.inc\"".to_owned(),
            Self::Links => "\"always\", \"never\", \"inside\", or a list of directories".to_owned(),
            Self::Host => "a host without a port (\"example.org\", \"*.example.org\", \"192.0.2.1\", \"[2001:db8::1]\") or \"default\""
                .to_owned(),
            Self::Certificate => "a certificate ({ cert = \"/path\", key = \"/path\" })".to_owned(),
            Self::List(of) => format!("{}, or a list of such", of.expected()),
            Self::Map => "a table of names and values".to_owned(),
        }
    }
}
