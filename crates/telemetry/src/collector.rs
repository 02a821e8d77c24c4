//! The exporter of OpenTelemetry's own crates, as the settings want it: gRPC by tonic, or HTTP with protobuf by our client.

use crate::http_client::HttpClient;
use howdah_config::{TelemetryProtocol, TelemetrySettings};
use opentelemetry::KeyValue;
use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use std::path::Path;
use tonic::metadata::{Ascii, MetadataKey, MetadataValue};

/// Makes the exporter. To be called within the runtime that is to run it.
pub(crate) fn exporter(settings: &TelemetrySettings) -> Result<SpanExporter, String> {
    let made = match settings.protocol {
        TelemetryProtocol::Http => over_http(settings)?,
        TelemetryProtocol::Grpc => over_grpc(settings)?,
    };
    let mut exporter = made.map_err(|error| format!("`telemetry`: {error}"))?;
    exporter.set_resource(&resource(settings));
    Ok(exporter)
}

type Made = Result<SpanExporter, opentelemetry_otlp::ExporterBuildError>;

fn over_http(settings: &TelemetrySettings) -> Result<Made, String> {
    let builder = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
    let builder = builder.with_endpoint(settings.address()).with_timeout(settings.timeout);
    Ok(builder.with_http_client(HttpClient::new(settings)?).build())
}

fn over_grpc(settings: &TelemetrySettings) -> Result<Made, String> {
    let mut fields: Vec<(MetadataKey<Ascii>, MetadataValue<Ascii>)> = Vec::new();
    for (name, value) in settings.headers.iter() {
        let wrong = || format!("`telemetry.headers`: {name} cannot be sent with gRPC");
        let key = MetadataKey::from_bytes(name.to_ascii_lowercase().as_bytes()).map_err(|_| wrong())?;
        let mut value = MetadataValue::try_from(value.expose()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        fields.push((key, value));
    }
    let address = settings.address();
    let builder = SpanExporter::builder().with_tonic();
    let builder = builder.with_endpoint(&address).with_timeout(settings.timeout);
    // The library would have the environment's fields win over those of the settings.
    let builder = builder.with_interceptor(move |mut request: tonic::Request<()>| {
        for (key, value) in &fields {
            request.metadata_mut().insert(key.clone(), value.clone());
        }
        Ok(request)
    });
    if !address.starts_with("https://") {
        return Ok(builder.build());
    }
    let mut tls = ClientTlsConfig::new().with_native_roots();
    if let Some(path) = &settings.ca_file {
        tls = tls.ca_certificate(Certificate::from_pem(read(path)?));
    }
    Ok(builder.with_tls_config(tls).build())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("`telemetry.ca_file`: cannot read {}: {error}", path.display()))
}

/// What the spans are of.
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

/// This server among others with its name.
fn instance() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), std::process::id())
}
