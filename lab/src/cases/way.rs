//! Connections of clients to a system: without TLS, or over it with one of the protocols.

/// Without TLS, or how with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// HTTP/1.1 on connections that stay open.
    #[default]
    Plain,
    Tls(Protocol, Connections),
}

/// Protocol over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    Http1,
    Http2,
    Http3,
}

/// Lifetime of a connection, and beginning of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// They stay open.
    Kept,
    /// One for each request, with a full handshake.
    New,
    /// One for each request, with a session that is resumed.
    Resumed,
}

impl Protocol {
    pub fn words(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1 over TLS",
            Self::Http2 => "HTTP/2 over TLS",
            Self::Http3 => "HTTP/3",
        }
    }

    /// Its name in ALPN.
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
            Self::Http3 => b"h3",
        }
    }
}

impl Way {
    /// Protocol of the clients; without TLS it is HTTP/1.1.
    pub fn protocol(self) -> Protocol {
        match self {
            Self::Plain => Protocol::Http1,
            Self::Tls(protocol, _) => protocol,
        }
    }

    /// True if the constant-rate generator can come so.
    pub fn has_constant_rate(self) -> bool {
        matches!(self, Self::Plain | Self::Tls(Protocol::Http1, Connections::Kept))
    }

    /// For reports; nothing for what is usual.
    pub fn words(self) -> String {
        let Self::Tls(protocol, connections) = self else { return String::new() };
        let connections = match connections {
            Connections::Kept => "",
            Connections::New => ", a full handshake for each request",
            Connections::Resumed => ", a resumed handshake for each request",
        };
        format!("{}{connections}", protocol.words())
    }
}
