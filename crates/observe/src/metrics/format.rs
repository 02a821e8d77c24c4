//! The formats of metrics, and which of them a collector gets.

/// Format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format.
    Text,
    /// OpenMetrics 1.0, with exemplars: traces of buckets.
    OpenMetrics,
    /// Prometheus' protobuf format, which has native histograms too.
    Protobuf,
}

impl Format {
    /// The one for a collector with this `Accept` field: of those that it names the one that it likes best, of two liked alike
    /// the one that says more; the text format if it names none.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let mut best = (Self::Text, 0.0);
        for format in [Self::Protobuf, Self::OpenMetrics, Self::Text] {
            let liked = accept.split(',').filter_map(|range| format.liked(range)).fold(0.0, f32::max);
            if liked > best.1 {
                best = (format, liked);
            }
        }
        best.0
    }

    /// Weight of this format in a range of a collector's `Accept`, between 0 and 1; `None` if the range is about
    /// another.
    fn liked(self, range: &str) -> Option<f32> {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next()?;
        if !self.kinds().iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            return None;
        }
        let (mut liked, mut is_delimited) = (1.0, false);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match &*name.trim().to_ascii_lowercase() {
                "q" => liked = value.parse().ok().filter(|liked| (0.0..=1.0).contains(liked)).unwrap_or(0.0),
                // A later version is not ours to speak; none is any.
                "version" if self.version() != Some(value) => return None,
                "proto" if value != "io.prometheus.client.MetricFamily" => return None,
                "encoding" => is_delimited = value == "delimited",
                _ => {}
            }
        }
        (self != Self::Protobuf || is_delimited).then_some(liked)
    }

    /// The media types that mean it.
    const fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Text => &["text/plain", "text/*", "*/*"],
            Self::OpenMetrics => &["application/openmetrics-text"],
            Self::Protobuf => &["application/vnd.google.protobuf"],
        }
    }

    const fn version(self) -> Option<&'static str> {
        match self {
            Self::Text => Some("0.0.4"),
            Self::OpenMetrics => Some("1.0.0"),
            Self::Protobuf => None,
        }
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Format::{self, OpenMetrics, Protobuf, Text};

    const PROTO: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    const OPEN: &str = "application/openmetrics-text;version=1.0.0";

    #[test]
    fn a_collector_gets_what_it_reads() {
        let prometheus = format!("{OPEN};escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.1");
        assert_eq!(Format::accepted(&prometheus), OpenMetrics);
        // As Prometheus 2.42 and 3 ask where native histograms are switched on.
        let native = format!("{PROTO},{OPEN};q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,*/*;q=0.1");
        assert_eq!(Format::accepted(&native), Protobuf);
        let later = format!("{PROTO};escaping=allow-utf-8;q=0.6,{OPEN};q=0.5,text/plain;version=1.0.0;q=0.3,*/*;q=0.1");
        assert_eq!(Format::accepted(&later), Protobuf);
    }

    #[test]
    fn what_a_collector_likes_more_comes_first() {
        for (accept, format) in [
            (format!("{PROTO};q=0.3, {OPEN};q=0.5"), OpenMetrics),
            (format!("{PROTO};q=0.3, {OPEN};q=0.5, */*"), Text),
            (format!("text/plain, {OPEN}, {PROTO}"), Protobuf),
            (format!("{OPEN};q=0, text/plain;q=0.1"), Text),
            (format!("{PROTO};q=2, {OPEN};q=x"), Text),
            (format!("{PROTO};Q=\"0.5\", text/*;q=0.4"), Protobuf),
            ("text/plain;q=0".to_owned(), Text),
            ("Application/OpenMetrics-Text".to_owned(), OpenMetrics),
        ] {
            assert_eq!(Format::accepted(&accept), format, "{accept}");
        }
    }

    #[test]
    fn what_is_not_ours_to_speak_is_not_spoken() {
        for accept in [
            "",
            "*/*",
            "text/plain",
            ",;=,;q",
            "application/openmetrics-text; version=2.0.0",
            "text/html;version=1.0.0",
            "application/vnd.google.protobuf",
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
            "application/vnd.google.protobuf;proto=other.Message;encoding=delimited",
        ] {
            assert_eq!(Format::accepted(accept), Text, "{accept}");
        }
    }
}
