//! Settings of traces, and the value types that only they use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::choice::{ParentTrust, Sampler};
use crate::kind::Kind;
use crate::secret::Secret;
use crate::table::settings;
use crate::value::Value;
use howdah_rules::tree::{Node, Tree};

settings! {
    /// Traces by OpenTelemetry: a span for each request, sent to a collector by OTLP.
    pub struct TelemetrySettings at "telemetry" {
        /// Address of the collector for OTLP over HTTP with protobuf. `/v1/traces` is appended if missing. Without it no
        /// traces are made. `"env"`: `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, else `OTEL_EXPORTER_OTLP_ENDPOINT`, else
        /// `http://localhost:4318`.
        ///
        /// With an endpoint, the standard environment variables fill in missing settings, and those that end in
        /// `_HEADERS` name headers of each export, such as an API key. Scripts never inherit them.
        endpoint: Option<String> = r#""""# example(r#""http://collector.internal:4318""#);
        /// Share of traces to sample, from 0 to 1, for samplers with a ratio.
        ratio: Ratio = "1.0" example("0.05");
        /// Callers whose `traceparent` is continued: `http.trusted_proxies` (`trusted`), all (`always`) or none
        /// (`never`). Otherwise a new trace begins, with a link to the caller's.
        parent: ParentTrust = r#""trusted""# example(r#""always""#);
        /// Name of this service.
        service_name: String = r#""howdah""# example(r#""shop""#);
    }
    plus {
        /// Create and export traces.
        enabled: bool = false;
        /// Headers of each export.
        headers: SecretMap = SecretMap::default();
        /// Attributes of the resource: `OTEL_RESOURCE_ATTRIBUTES`.
        attributes: BTreeMap<String, String> = BTreeMap::new();
        /// Additional CA certificates to verify the collector with: `OTEL_EXPORTER_OTLP_CERTIFICATE`.
        ca_file: Option<PathBuf> = None;
        /// Append nothing to the endpoint: it is that of `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`.
        exact_endpoint: bool = false;
        /// Requests to sample: `OTEL_TRACES_SAMPLER`.
        sampler: Sampler = Sampler::ParentRatio;
        /// Maximum time of an export, retries included: `OTEL_EXPORTER_OTLP_TIMEOUT`.
        timeout: Duration = Duration::from_secs(10);
        /// Maximum time that a span waits for others before it is sent: `OTEL_BSP_SCHEDULE_DELAY`.
        delay: Duration = Duration::from_secs(1);
        /// Maximum number of spans that wait; further ones are dropped and counted: `OTEL_BSP_MAX_QUEUE_SIZE`.
        queue: usize = 8192;
        /// Number of waiting spans at which they are sent before `delay` has passed: `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`.
        /// All spans of a request are sent together, so a batch may be a few spans larger.
        batch: usize = 512;
    }
}

impl TelemetrySettings {
    /// The address that exports are sent to.
    pub fn address(&self) -> String {
        let endpoint = self.endpoint.as_deref().unwrap_or("http://localhost:4318");
        if self.exact_endpoint || endpoint.ends_with("/v1/traces") {
            return endpoint.to_owned();
        }
        format!("{}/v1/traces", endpoint.trim_end_matches('/'))
    }
}

/// A share: a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(f64);

/// A number from 0 to 1 always equals itself (it is not NaN).
impl Eq for Ratio {}

impl Ratio {
    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// `None` if the number is not a share.
    pub(crate) fn new(number: f64) -> Option<Self> {
        (0.0..=1.0).contains(&number).then_some(Self(number))
    }
}

impl Value for Ratio {
    const KIND: Kind = Kind::Ratio;

    fn from_node(node: &Node) -> Option<Self> {
        match node.tree {
            Tree::Integer(number) => Self::new(f64::from(i32::try_from(number).ok()?)),
            Tree::Float(number) => Self::new(number),
            _ => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => Self::new(percent.parse::<f64>().ok()? / 100.0),
            None => Self::new(text.parse().ok()?),
        }
    }

    fn show(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Names and secret values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretMap(BTreeMap<String, Secret>);

impl SecretMap {
    /// Names with their values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Adds a value unless the name has one.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        self.0.entry(name.to_owned()).or_insert_with(|| Secret::from(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_from_0_to_1() {
        let read = |text: &str| Node::from_literal(text).and_then(|node| Ratio::from_node(&node)).map(Ratio::get);
        assert_eq!([read("0"), read("1"), read("0.25"), read("1.0")], [Some(0.0), Some(1.0), Some(0.25), Some(1.0)]);
        for wrong in ["-1", "2", "1.1", "nan", "inf", r#""x""#, "true"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(Ratio::from_text("0.5").map(|ratio| ratio.show()).as_deref(), Some("0.5"));
        assert_eq!(Ratio::from_text("5%"), Ratio::new(0.05));
        assert!(["%", "101%", "-1%", "5 %"].iter().all(|text| Ratio::from_text(text).is_none()));
    }

    #[test]
    fn secret_values_are_not_shown() {
        let mut map = SecretMap::default();
        map.add("authorization", "Bearer s3cret");
        assert_eq!(map.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["authorization"]);
        assert!(!format!("{map:?}").contains("s3cret"));
    }

    #[test]
    fn the_address_has_the_path_of_traces() {
        let address = |endpoint: Option<&str>, exact_endpoint| {
            let endpoint = endpoint.map(str::to_owned);
            TelemetrySettings { endpoint, exact_endpoint, ..TelemetrySettings::default() }.address()
        };
        assert_eq!(address(None, false), "http://localhost:4318/v1/traces");
        assert_eq!(address(Some("https://c:1/otlp/"), false), "https://c:1/otlp/v1/traces");
        assert_eq!(address(Some("http://c/v1/traces"), false), "http://c/v1/traces");
        assert_eq!(address(Some("http://c/in"), true), "http://c/in");
    }
}
