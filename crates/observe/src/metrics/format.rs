//! Formats of the metrics page, and their negotiation with a collector.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format.
    Text,
    /// OpenMetrics 1.0, with exemplars: one trace per bucket.
    OpenMetrics,
}

impl Format {
    /// The format for a collector with this `Accept` field: the one with the higher weight, OpenMetrics if the weights
    /// are equal, the text format if the field names neither.
    pub fn accepted(accept: &str) -> Self {
        let liked = |format: Self| accept.split(',').filter_map(|range| format.liked(range)).fold(0.0, f32::max);
        let open = liked(Self::OpenMetrics);
        if open > 0.0 && open >= liked(Self::Text) { Self::OpenMetrics } else { Self::Text }
    }

    /// Weight of this format in one range of `Accept`, between 0 and 1; `None` if the range does not match it.
    fn liked(self, range: &str) -> Option<f32> {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next()?;
        if !self.kinds().iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            return None;
        }
        let mut liked = 1.0;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match &*name.trim().to_ascii_lowercase() {
                "q" => liked = value.parse().ok().filter(|liked| (0.0..=1.0).contains(liked)).unwrap_or(0.0),
                // Later versions are not supported; a missing version means any.
                "version" if value != self.version() => return None,
                _ => {}
            }
        }
        Some(liked)
    }

    /// The media types that match this format.
    const fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Text => &["text/plain", "text/*", "*/*"],
            Self::OpenMetrics => &["application/openmetrics-text"],
        }
    }

    const fn version(self) -> &'static str {
        match self {
            Self::Text => "0.0.4",
            Self::OpenMetrics => "1.0.0",
        }
    }

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Format::{self, OpenMetrics, Text};

    const PROTO: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    const OPEN: &str = "application/openmetrics-text;version=1.0.0";

    #[test]
    fn a_collector_gets_the_format_that_it_prefers() {
        for (accept, format) in [
            // The `Accept` fields of Prometheus 2.42, of 2.42 with native histograms, and of 3 with native histograms.
            (format!("{OPEN};escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"), OpenMetrics),
            (format!("{PROTO},{OPEN};q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,*/*;q=0.1"), OpenMetrics),
            (format!("{PROTO};q=0.6,{OPEN};q=0.5,text/plain;version=1.0.0;q=0.3,*/*;q=0.1"), OpenMetrics),
            (format!("{OPEN};q=0.5, */*"), Text),
            (format!("text/plain, {OPEN}"), OpenMetrics),
            (format!("{OPEN};q=0, text/plain;q=0.1"), Text),
            (format!("{OPEN};q=x"), Text),
            (format!("{OPEN};Q=\"0.5\", text/*;q=0.4"), OpenMetrics),
            ("text/plain;q=0".to_owned(), Text),
            ("Application/OpenMetrics-Text".to_owned(), OpenMetrics),
        ] {
            assert_eq!(Format::accepted(&accept), format, "{accept}");
        }
    }

    #[test]
    fn other_formats_and_versions_get_text() {
        for accept in [
            "",
            "*/*",
            "text/plain",
            ",;=,;q",
            "application/openmetrics-text; version=2.0.0",
            "text/html;version=1.0.0",
            PROTO,
        ] {
            assert_eq!(Format::accepted(accept), Text, "{accept}");
        }
    }
}
