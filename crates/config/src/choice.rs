//! Settings that are one word out of a few.

pub use howdah_transport::worker_spec::{Mode, SandboxProfile};

/// An enum whose variants are written as fixed words.
macro_rules! choice {
    (
        $(#[doc = $edoc:literal])+
        $name:ident, default $default:ident {
            $( $(#[doc = $doc:literal])+ $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[doc = $edoc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[doc = $doc])+ $variant, )+ }

        impl $name {
            /// Every word, in order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word that stands for this choice.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $( Self::$variant => $word, )+ }
            }

            /// The choice that a word stands for.
            #[must_use]
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
        /// By a text on port 80.
        Http01 = "http-01",
        /// By a handshake on port 443.
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
        /// The kernel's key rings.
        Keys = "keys",
        /// A second way to make system calls.
        IoUring = "io_uring",
        /// Sockets other than TCP, UDP and Unix ones.
        RawSockets = "raw_sockets",
        /// Setting the clock and the host's name.
        Clock = "clock",
        /// Typing into a terminal in the user's name.
        Terminal = "terminal",
        /// UDP sockets.
        Udp = "udp",
        /// Unix sockets.
        Unix = "unix",
        /// Starting processes.
        Fork = "fork",
    }
}

choice! {
    /// A version of TLS.
    TlsVersion, default Tls12 {
        /// RFC 5246.
        Tls12 = "1.2",
        /// RFC 8446.
        Tls13 = "1.3",
    }
}

choice! {
    /// Client certificates.
    ClientAuth, default Off {
        /// They are not asked.
        Off = "off",
        /// They may.
        Optional = "optional",
        /// They must.
        Required = "required",
    }
}

choice! {
    /// Which symbolic links static files may be reached through.
    Symlinks, default Inside {
        /// Those whose target stays under the root.
        Inside = "inside",
        /// All.
        Always = "always",
        /// None (the root itself may be one).
        Never = "never",
    }
}

choice! {
    /// Which of several servers gets a request.
    Balance, default RoundRobin {
        /// Each in turn, as often as its weight says.
        RoundRobin = "round-robin",
        /// The one that has the fewest requests under way for its weight.
        LeastConnections = "least-connections",
    }
}

choice! {
    /// `Host` that an upstream server receives.
    ProxyHost, default Request {
        /// The requested host.
        Request = "request",
        /// The server's own name.
        Upstream = "upstream",
    }
}

choice! {
    /// Headers that tell upstream servers about the client.
    ForwardedFields, default XForwarded {
        /// From `X-Forwarded-For` and its kin.
        XForwarded = "x-forwarded",
        /// From `Forwarded` (RFC 7239).
        Forwarded = "forwarded",
        /// Not at all.
        Off = "off",
    }
}

choice! {
    /// When symbolic links in the path of a root are resolved.
    RootLinks, default Keep {
        /// Scripts see the path as it is written.
        Keep = "keep",
        /// When the settings are read, so with each reload.
        Reload = "reload",
        /// At the beginning of each request.
        Request = "request",
    }
}

choice! {
    /// A field of a request that is believed where a trusted proxy sends it.
    TrustedHeader, default For {
        /// The client's address, as a list.
        For = "X-Forwarded-For",
        /// The client's scheme.
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
        /// Zstandard.
        Zstd = "zstd",
        /// Brotli.
        Brotli = "br",
        /// Gzip.
        Gzip = "gzip",
    }
}

choice! {
    /// Minimum level of the log.
    LogLevel, default Info {
        /// A person has to act now.
        Error = "error",
        /// And what is probably wrong.
        Warn = "warn",
        /// And what happens rarely: start, stop, reload.
        Info = "info",
        /// And what helps to find a fault.
        Debug = "debug",
        /// Everything.
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
        /// As `Text`; per request a short line to be read while one works, in colour where it goes to a terminal.
        Terminal = "terminal",
    }
}

choice! {
    /// Which requests have their spans sent.
    Sampler, default ParentRatio {
        /// All.
        AlwaysOn = "always_on",
        /// None.
        AlwaysOff = "always_off",
        /// A share, by the trace's id.
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
        /// All callers.
        Always = "always",
        /// No callers.
        Never = "never",
    }
}

/// Where the user comes from that the server becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerUser {
    /// It is named, or there is none.
    Named,
    /// None is named: it is the account that is meant for the server.
    Own,
    /// None is named, and there is no such account: it is PHP's.
    Shared,
}
