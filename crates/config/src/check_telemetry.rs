//! Settings of traces: applies the standard environment variables where nothing else is set, and rejects values that
//! cannot work.
//!
//! The variables are defined by the "OpenTelemetry Environment Variable Specification" and the specification of the
//! OTLP exporter.

use percent_encoding::percent_decode_str;
use std::time::Duration;

use crate::choice::Sampler;
use crate::origin::Origin;
use crate::settings_telemetry::{Ratio, TelemetrySettings};
use crate::source::Source;

/// Endpoint value that selects the endpoint of the environment.
const BY_ENVIRONMENT: &str = "env";

/// Applies the environment's values if tracing is enabled.
pub(crate) fn resolve(telemetry: &mut TelemetrySettings, source: &mut Source<'_>) {
    telemetry.enabled = telemetry.endpoint.is_some();
    if telemetry.endpoint.as_deref() == Some(BY_ENVIRONMENT) {
        telemetry.endpoint = None;
        source.origins.set("telemetry.endpoint".to_owned(), Origin::Default);
    }
    if !telemetry.enabled {
        return;
    }
    let mut variables = Variables { source };
    if variables.get("OTEL_SDK_DISABLED").is_some_and(|(_, value)| value.eq_ignore_ascii_case("true"))
        || variables.get("OTEL_TRACES_EXPORTER").is_some_and(|(_, value)| value == "none")
    {
        telemetry.enabled = false;
        return;
    }
    exporter(telemetry, &mut variables);
    let name = ("service_name", &["OTEL_SERVICE_NAME"][..]);
    let mut named = variables.set(name, &mut telemetry.service_name, |text| Some(text.to_owned()));
    for (key, value) in variables.pairs("OTEL_RESOURCE_ATTRIBUTES") {
        if key == "service.name" {
            let is_free = variables.source.origins.of("telemetry.service_name") == Origin::Default;
            if is_free && !std::mem::replace(&mut named, true) {
                telemetry.service_name = value;
            }
        } else {
            telemetry.attributes.entry(key).or_insert(value);
        }
    }
    let sampler = ("sampler", &["OTEL_TRACES_SAMPLER"][..]);
    variables.set(sampler, &mut telemetry.sampler, Sampler::from_word);
    let argument = ("ratio", &["OTEL_TRACES_SAMPLER_ARG"][..]);
    variables.set(argument, &mut telemetry.ratio, |text| Ratio::new(text.parse().ok()?));
    let number = |text: &str| text.parse().ok().filter(|number| (1..=1_000_000).contains(number));
    variables.set(("queue", &["OTEL_BSP_MAX_QUEUE_SIZE"]), &mut telemetry.queue, number);
    variables.set(("batch", &["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"]), &mut telemetry.batch, number);
    variables.set(("delay", &["OTEL_BSP_SCHEDULE_DELAY"]), &mut telemetry.delay, milliseconds);
}

/// Settings of the connection to the collector.
fn exporter(telemetry: &mut TelemetrySettings, variables: &mut Variables<'_, '_>) {
    let mut protocols = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"].into_iter();
    if let Some((variable, protocol)) = protocols.find_map(|name| variables.get(name))
        && protocol != "http/protobuf"
    {
        let message = format!("\"{protocol}\" is not supported; use \"http/protobuf\", usually on port 4318");
        variables.source.error(Some(Origin::Env(variable)), "telemetry", message);
    }
    let some = |text: &str| Some(Some(text.to_owned()));
    let own = ("endpoint", &["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"][..]);
    telemetry.exact_endpoint = variables.set(own, &mut telemetry.endpoint, some);
    variables.set(("endpoint", &["OTEL_EXPORTER_OTLP_ENDPOINT"]), &mut telemetry.endpoint, some);
    let file = ("ca_file", &["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"][..]);
    variables.set(file, &mut telemetry.ca_file, |text| Some(Some(text.into())));
    let timeout = ("timeout", &["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"][..]);
    variables.set(timeout, &mut telemetry.timeout, milliseconds);
    for variable in ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"] {
        for (name, value) in variables.pairs(variable) {
            telemetry.headers.add(&name.to_ascii_lowercase(), &value);
        }
    }
}

fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_millis)
}

/// The environment, used for values that are not set otherwise.
struct Variables<'a, 'b> {
    source: &'a mut Source<'b>,
}

impl Variables<'_, '_> {
    /// A variable's name and value. An empty value counts as unset, as the specification requires.
    fn get(&self, variable: &str) -> Option<(String, String)> {
        let value = self.source.environment.env.get(variable)?.trim();
        (!value.is_empty()).then(|| (variable.to_owned(), value.to_owned()))
    }

    /// Sets a missing value from the first of these variables that is set. Returns `true` if it did.
    fn set<T>(&mut self, (key, names): (&str, &[&str]), value: &mut T, read: impl Fn(&str) -> Option<T>) -> bool {
        let setting = format!("telemetry.{key}");
        if self.source.origins.of(&setting) != Origin::Default {
            return false;
        }
        let Some((variable, text)) = names.iter().find_map(|name| self.get(name)) else { return false };
        let origin = Origin::Env(variable);
        match read(&text) {
            Some(read) => {
                *value = read;
                self.source.origins.set(setting, origin);
                true
            }
            None => {
                self.source.error(Some(origin), &setting, format!("\"{text}\" is not a valid value there"));
                false
            }
        }
    }

    /// Parses a comma-separated list of `key=value` with percent-encoded values.
    fn pairs(&mut self, variable: &str) -> Vec<(String, String)> {
        let Some((variable, text)) = self.get(variable) else { return Vec::new() };
        let mut found = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => {
                    found.push((decoded(key.trim()), decoded(value.trim())));
                }
                // Not shown: the text may be a secret.
                _ => {
                    let message = "has a part that is not KEY=VALUE".to_owned();
                    self.source.error(Some(Origin::Env(variable.clone())), "telemetry", message);
                }
            }
        }
        found
    }
}

/// Decodes percent-encoding; invalid sequences are kept.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Reports settings that cannot work.
pub(crate) fn check(telemetry: &TelemetrySettings, source: &mut Source<'_>) {
    if !telemetry.enabled {
        return;
    }
    let address = telemetry.address();
    let rest = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
    if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with(['/', ':']) || rest.contains([' ', '@', '#'])) {
        // The address may contain a password.
        let shown = crate::secret::without_password(&address);
        let message = format!("\"{shown}\" is not an address such as \"http://collector.internal:4318\"");
        source.object("telemetry.endpoint", message);
    }
    for (name, value) in telemetry.headers.iter() {
        let is_name =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !is_name {
            source.object("telemetry.headers", format!("\"{name}\" is not a valid header name"));
        } else if !value.expose().bytes().all(|b| matches!(b, b' '..=b'~')) {
            source.object(
                "telemetry.headers",
                format!("the value of {name} has characters that are not allowed in a header"),
            );
        }
    }
    if let Some(file) = &telemetry.ca_file
        && !file.is_file()
    {
        source.object("telemetry.ca_file", format!("there is no file {}", file.display()));
    }
    if telemetry.timeout.is_zero() {
        source.object("telemetry.timeout", "must be more than 0".to_owned());
    }
    if telemetry.service_name.trim().is_empty() {
        source.object("telemetry.service_name", "must not be empty".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_as_far_as_they_are_encoded() {
        assert_eq!(decoded("Bearer%20a%2Cb"), "Bearer a,b");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
