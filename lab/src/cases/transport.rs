//! Protocol and connections of the clients: plain HTTP, or one of the protocols over TLS.

/// Plain HTTP, or a protocol over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// HTTP/1.1 on persistent connections.
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

/// Lifetime of a connection, and the start of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// Persistent connections.
    Kept,
    /// One connection per request, with a full handshake.
    New,
    /// One connection per request, with a resumed session.
    Resumed,
}

impl Protocol {
    pub fn description(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1 over TLS",
            Self::Http2 => "HTTP/2 over TLS",
            Self::Http3 => "HTTP/3",
        }
    }

    /// Returns its name in ALPN.
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
            Self::Http3 => b"h3",
        }
    }
}

impl Transport {
    /// Returns the protocol of the clients; without TLS it is HTTP/1.1.
    pub fn protocol(self) -> Protocol {
        match self {
            Self::Plain => Protocol::Http1,
            Self::Tls(protocol, _) => protocol,
        }
    }

    /// Returns `true` if the constant-rate generator supports it.
    pub fn has_constant_rate(self) -> bool {
        matches!(self, Self::Plain | Self::Tls(Protocol::Http1, Connections::Kept))
    }

    /// Describes it for reports; empty for the default.
    pub fn description(self) -> String {
        let Self::Tls(protocol, connections) = self else { return String::new() };
        let connections = match connections {
            Connections::Kept => "",
            Connections::New => ", a full handshake for each request",
            Connections::Resumed => ", a resumed handshake for each request",
        };
        format!("{}{connections}", protocol.description())
    }
}
