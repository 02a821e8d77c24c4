//! Configures OpenTelemetry's exporter: OTLP over HTTP with protobuf, sent by our HTTP client.

use crate::http_client::HttpClient;
use howdah_config::TelemetrySettings;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;

/// Creates the exporter. Call it within the runtime that will run it.
pub(crate) fn exporter(settings: &TelemetrySettings) -> Result<SpanExporter, String> {
    let builder = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
    let builder = builder.with_endpoint(settings.address()).with_timeout(settings.timeout);
    let made = builder.with_http_client(HttpClient::new(settings)?).build();
    let mut exporter = made.map_err(|error| format!("`telemetry`: {error}"))?;
    exporter.set_resource(&resource(settings));
    Ok(exporter)
}

/// The service that the spans belong to.
fn resource(settings: &TelemetrySettings) -> Resource {
    let known = [
        KeyValue::new("process.pid", i64::from(std::process::id())),
        KeyValue::new("telemetry.sdk.language", "rust"),
        KeyValue::new("telemetry.sdk.name", "opentelemetry"),
        KeyValue::new("service.instance.id", instance()),
    ];
    let own = settings.attributes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let name = KeyValue::new("service.name", settings.service_name.clone());
    Resource::builder_empty().with_attributes(known.into_iter().chain(own).chain([name])).build()
}

/// A unique id that distinguishes this server from others of the same service.
fn instance() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}
