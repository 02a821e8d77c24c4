//! Settings with a fixed set of words.

pub use howdah_transport::worker_spec::{Mode, SandboxProfile};

/// An enum whose variants are written as fixed words.
macro_rules! choice {
    (
        $(#[doc = $edoc:literal])+
        $name:ident, default $default:ident {
            $( $(#[doc = $doc:literal])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[doc = $edoc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[doc = $doc])* $variant, )+ }

        impl $name {
            /// All words, in order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word for this choice.
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }

            /// The choice for a word.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $( $word => Some(Self::$variant), )+ _ => None }
            }
        }

        impl Default for $name {
            fn default() -> Self { Self::$default }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.word()) }
        }
    };
}

choice! {
    /// Challenges that prove control of a name.
    Proof, default Http01 {
        /// A text served on port 80.
        Http01 = "http-01",
        /// A TLS handshake on port 443.
        TlsAlpn01 = "tls-alpn-01",
    }
}

choice! {
    /// A group of system calls that a sandbox can refuse or allow.
    SystemCalls, default Trace {
        /// Looking into other processes and changing them.
        Trace = "trace",
        /// Mounting, and changing the root.
        Mount = "mount",
        /// Making or entering namespaces.
        Namespaces = "namespaces",
        /// Changing or watching the kernel.
        Kernel = "kernel",
        Keys = "keys",
        /// A second way to make system calls.
        IoUring = "io_uring",
        /// Sockets other than TCP, UDP and Unix ones.
        RawSockets = "raw_sockets",
        /// Setting the clock and the host's name.
        Clock = "clock",
        /// Typing into a terminal in the user's name.
        Terminal = "terminal",
        Udp = "udp",
        Unix = "unix",
        Fork = "fork",
    }
}

choice! {
    /// A version of TLS.
    TlsVersion, default Tls12 {
        Tls12 = "1.2",
        Tls13 = "1.3",
    }
}

choice! {
    /// Client certificates.
    ClientAuth, default Off {
        Off = "off",
        Optional = "optional",
        Required = "required",
    }
}

choice! {
    /// Symbolic links that static files may be reached through.
    Symlinks, default Inside {
        /// Links whose target stays below the root.
        Inside = "inside",
        /// All links.
        Always = "always",
        /// No links below the root; the root itself may be a link.
        Never = "never",
    }
}

choice! {
    /// Policy that selects the server for a request.
    Balance, default RoundRobin {
        /// Each server in turn, in proportion to its weight.
        RoundRobin = "round-robin",
        /// The server with the fewest active requests in relation to its weight.
        LeastConnections = "least-connections",
    }
}

choice! {
    /// `Host` that an upstream server receives.
    ProxyHost, default Request {
        Request = "request",
        /// The server's own name.
        Upstream = "upstream",
    }
}

choice! {
    /// Headers that tell upstream servers about the client.
    ForwardedFields, default XForwarded {
        XForwarded = "x-forwarded",
        Forwarded = "forwarded",
        Off = "off",
    }
}

choice! {
    /// When symbolic links in the path of a root are resolved.
    RootLinks, default Keep {
        /// Never: scripts see the path as it was written.
        Keep = "keep",
        /// When the settings are read, and so at each reload.
        Reload = "reload",
        /// At the start of each request.
        Request = "request",
    }
}

choice! {
    /// A request header that is trusted if a trusted proxy sends it.
    TrustedHeader, default For {
        /// The client's address, as a list.
        For = "X-Forwarded-For",
        Proto = "X-Forwarded-Proto",
        /// The host that the client asked for.
        Host = "X-Forwarded-Host",
        /// The port that the client asked for.
        Port = "X-Forwarded-Port",
        /// All of these in one (RFC 7239).
        Forwarded = "Forwarded",
        /// The id of the request in logs.
        RequestId = "X-Request-Id",
    }
}

choice! {
    /// A coding that responses are compressed with.
    Algorithm, default Gzip {
        Zstd = "zstd",
        Brotli = "br",
        Gzip = "gzip",
    }
}

choice! {
    /// Minimum level of the log.
    LogLevel, default Info {
        /// Someone has to act now.
        Error = "error",
        /// Also probable mistakes.
        Warn = "warn",
        /// Also rare events: start, stop, reload.
        Info = "info",
        /// Also details that help to find a fault.
        Debug = "debug",
        Trace = "trace",
    }
}

choice! {
    /// Format of the error log and of the access log.
    LogFormat, default Text {
        /// One line of text per event; per request the combined format of web servers, with Howdah's fields after it.
        Text = "text",
        /// One JSON object per event or request.
        Json = "json",
        /// As `Text`, but a short line per request, for development; in color on a terminal.
        Terminal = "terminal",
    }
}

choice! {
    /// Requests whose spans are sent.
    Sampler, default ParentRatio {
        AlwaysOn = "always_on",
        AlwaysOff = "always_off",
        /// A share of all traces, selected by trace id.
        Ratio = "traceidratio",
        /// The caller's decision; without one, all.
        ParentOn = "parentbased_always_on",
        /// The caller's decision; without one, none.
        ParentOff = "parentbased_always_off",
        /// The caller's decision; without one, a share.
        ParentRatio = "parentbased_traceidratio",
    }
}

choice! {
    /// Callers whose traces are continued.
    ParentTrust, default Trusted {
        /// Those of trusted proxies.
        Trusted = "trusted",
        Always = "always",
        Never = "never",
    }
}

/// Origin of the user that the server switches to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerUser {
    /// It was set, or the server does not switch.
    Named,
    /// Not set: the account created for the server.
    Own,
    /// Not set, and the server has no account: PHP's user.
    Shared,
}
