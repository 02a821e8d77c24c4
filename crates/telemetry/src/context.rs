//! The trace of a request: incoming `traceparent` and `tracestate` (W3C Trace Context), the sampling decision, and the
//! context for PHP and upstream servers.

use howdah_config::{ParentTrust, Sampler as Word, TelemetrySettings};
use http::{HeaderMap, HeaderValue};
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, Sampler, SamplingDecision, ShouldSample};
use std::str::FromStr;
use std::time::Instant;

/// Maximum length of a forwarded `tracestate`: the recommendation asks for at least 512 characters.
const MAX_STATE_LEN: usize = 1024;

/// Makes the sampling decision for new requests.
#[derive(Debug)]
pub(crate) struct Contexts {
    trust: ParentTrust,
    sampler: Sampler,
    /// The caller's sampling decision is followed if its trace is continued.
    follows_parent: bool,
}

/// The position of one request in its trace.
#[derive(Debug, Clone)]
pub struct Trace {
    pub(crate) context: SpanContext,
    /// The span that this trace continues: the caller's, or that of the request that opened the connection.
    pub(crate) parent: Option<SpanId>,
    /// The parent is a span of this server.
    pub(crate) has_own_parent: bool,
    /// The span of a caller whose trace is not continued, or of the request that opened an event's connection.
    pub(crate) link: Option<SpanContext>,
    /// The span of PHP or the upstream server.
    pub(crate) inner: SpanId,
    /// When the request was passed to PHP or upstream.
    pub handed_on: Option<Instant>,
    /// When the request's body was complete, if it has one.
    pub body_complete: Option<Instant>,
    /// When the response began.
    pub responded: Option<Instant>,
    /// The response is incomplete.
    pub cut_off: bool,
}

impl Contexts {
    pub(crate) fn new(settings: &TelemetrySettings) -> Self {
        let sampler = match settings.sampler {
            Word::AlwaysOn | Word::ParentOn => Sampler::AlwaysOn,
            Word::AlwaysOff | Word::ParentOff => Sampler::AlwaysOff,
            Word::Ratio | Word::ParentRatio => Sampler::TraceIdRatioBased(settings.ratio.get()),
        };
        let follows_parent = matches!(settings.sampler, Word::ParentOn | Word::ParentOff | Word::ParentRatio);
        Self { trust: settings.parent, sampler, follows_parent }
    }

    pub(crate) fn begin(&self, headers: &HeaderMap, trusted: bool) -> Trace {
        let caller = caller(headers);
        let continued = match self.trust {
            ParentTrust::Always => true,
            ParentTrust::Trusted => trusted,
            ParentTrust::Never => false,
        };
        let (caller, link) = if continued { (caller, None) } else { (None, caller) };
        let trace_id = caller.as_ref().map_or_else(new_trace_id, SpanContext::trace_id);
        let sampled = match &caller {
            Some(caller) if self.follows_parent => caller.is_sampled(),
            _ => self.is_in_sample(trace_id),
        };
        Trace::new(trace_id, sampled, caller.as_ref(), link)
    }

    /// Begins the trace of an event on a connection: below the request that opens the connection (`is_open`), else a
    /// trace with a link to that request, because a connection may have any number of events.
    pub(crate) fn begin_event(&self, opening: Option<&OpeningSpan>, is_open: bool) -> Trace {
        match opening {
            Some(OpeningSpan(opening)) if is_open => {
                let trace = Trace::new(opening.trace_id(), opening.is_sampled(), Some(opening), None);
                Trace { has_own_parent: true, ..trace }
            }
            _ => {
                let id = new_trace_id();
                Trace::new(id, self.is_in_sample(id), None, opening.map(|opening| opening.0.clone()))
            }
        }
    }

    fn is_in_sample(&self, trace: TraceId) -> bool {
        let kind = SpanKind::Server;
        self.sampler.should_sample(None::<&Context>, trace, "", &kind, &[], &[]).decision
            == SamplingDecision::RecordAndSample
    }
}

/// The span of the request that opened a connection.
#[derive(Debug, Clone)]
pub struct OpeningSpan(SpanContext);

fn new_trace_id() -> TraceId {
    RandomIdGenerator::default().new_trace_id()
}

impl Trace {
    fn new(id: TraceId, sampled: bool, parent: Option<&SpanContext>, link: Option<SpanContext>) -> Self {
        let ids = RandomIdGenerator::default();
        let flags = TraceFlags::default().with_sampled(sampled);
        let state = parent.map_or(TraceState::NONE, |parent| parent.trace_state().clone());
        Self {
            context: SpanContext::new(id, ids.new_span_id(), flags, false, state),
            parent: parent.map(SpanContext::span_id),
            has_own_parent: false,
            link,
            inner: ids.new_span_id(),
            handed_on: None,
            body_complete: None,
            responded: None,
            cut_off: false,
        }
    }

    /// The request's span, for the events of the connection that it opens.
    pub fn opening(&self) -> OpeningSpan {
        OpeningSpan(self.context.clone())
    }

    /// The trace's id, in its form for logs.
    pub fn id(&self) -> TraceId {
        self.context.trace_id()
    }

    /// `true` if the trace's spans are to be sent.
    pub fn is_sampled(&self) -> bool {
        self.context.is_sampled()
    }

    /// The numeric ids of the trace and of the request's span, if spans are sent.
    pub fn sampled_ids(&self) -> Option<(u128, u64)> {
        let (trace, span) = (self.context.trace_id().to_bytes(), self.context.span_id().to_bytes());
        self.is_sampled().then(|| (u128::from_be_bytes(trace), u64::from_be_bytes(span)))
    }

    /// `traceparent` for PHP or the upstream server.
    pub fn parent_field(&self) -> String {
        format!("00-{}-{}-{:02x}", self.context.trace_id(), self.inner, self.context.trace_flags())
    }

    /// `tracestate` for PHP or the upstream server, if the continued trace has one.
    pub fn state_field(&self) -> Option<String> {
        Some(self.context.trace_state().header()).filter(|state| !state.is_empty())
    }
}

/// The caller's span. `None` if a field is missing, repeated or malformed: the recommendation then requires a new
/// trace.
fn caller(headers: &HeaderMap) -> Option<SpanContext> {
    let mut fields = headers.get_all("traceparent").iter();
    let field = fields.next().filter(|_| fields.next().is_none())?;
    let (trace, span, flags) = parent(field.as_bytes())?;
    Some(SpanContext::new(trace, span, flags, true, state(headers)))
}

/// `VERSION-TRACE-SPAN-FLAGS` in lower-case hexadecimal digits. A later version may append more after a further hyphen.
fn parent(field: &[u8]) -> Option<(TraceId, SpanId, TraceFlags)> {
    let text = std::str::from_utf8(field.trim_ascii()).ok()?;
    let mut parts = text.split('-');
    let mut digits = |count: usize| {
        let part = parts.next()?;
        let is_hex = part.len() == count && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        is_hex.then_some(part)
    };
    let (version, trace, span, flags) = (digits(2)?, digits(32)?, digits(16)?, digits(2)?);
    if version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
    let valid = trace != TraceId::INVALID && span != SpanId::INVALID;
    valid.then(|| (trace, span, TraceFlags::default().with_sampled(sampled)))
}

/// Vendors' data. Dropped if malformed or too long; the trace continues.
fn state(headers: &HeaderMap) -> TraceState {
    let lines: Vec<&str> =
        headers.get_all("tracestate").iter().filter_map(|line| HeaderValue::to_str(line).ok()).collect();
    let joined = lines.join(",");
    if joined.is_empty() || joined.len() > MAX_STATE_LEN {
        return TraceState::NONE;
    }
    TraceState::from_str(&joined).unwrap_or(TraceState::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    fn begin(settings: &TelemetrySettings, field: &str, trusted: bool) -> Trace {
        Contexts::new(settings).begin(&headers(&[("traceparent", field)]), trusted)
    }

    #[test]
    fn only_a_valid_traceparent_is_continued() {
        let good = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let trace = begin(&TelemetrySettings::default(), &good, true);
        assert_eq!(trace.id().to_string(), TRACE);
        assert_eq!(trace.parent.map(|span| span.to_string()).as_deref(), Some("00f067aa0ba902b7"));
        assert!(trace.is_sampled());
        let later = begin(&TelemetrySettings::default(), &format!("01-{TRACE}-00f067aa0ba902b7-01-more"), true);
        assert_eq!(later.id().to_string(), TRACE);
        for broken in [
            "",
            "00",
            &format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            &format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            &format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{TRACE}-0000000000000000-01"),
            &format!("00-{TRACE}-00f067aa0ba902b7-1"),
            &format!("00-{TRACE}é-00f067aa0ba902b7-01"),
        ] {
            let trace = begin(&TelemetrySettings::default(), broken, true);
            assert!(trace.parent.is_none() && trace.id().to_string() != TRACE, "{broken}");
        }
        let twice = headers(&[("traceparent", &good), ("traceparent", &good)]);
        assert!(Contexts::new(&TelemetrySettings::default()).begin(&twice, true).parent.is_none());
    }

    #[test]
    fn untrusted_callers_begin_a_new_trace_with_a_link() {
        let field = format!("00-{TRACE}-00f067aa0ba902b7-00");
        for (parent, trusted, continued) in [
            (ParentTrust::Trusted, true, true),
            (ParentTrust::Trusted, false, false),
            (ParentTrust::Always, false, true),
            (ParentTrust::Never, true, false),
        ] {
            let trace = begin(&TelemetrySettings { parent, ..TelemetrySettings::default() }, &field, trusted);
            assert_eq!(trace.id().to_string() == TRACE, continued, "{parent} {trusted}");
            assert_eq!(trace.link.is_some(), !continued);
            // An untrusted caller's sampling decision is ignored.
            assert_eq!(trace.is_sampled(), !continued);
        }
    }

    #[test]
    fn samplers_decide_as_their_names_say() {
        let field = |flags: &str| format!("00-{TRACE}-00f067aa0ba902b7-{flags}");
        for (sampler, of_sampled, of_unsampled, without_parent) in [
            (Word::AlwaysOn, true, true, true),
            (Word::AlwaysOff, false, false, false),
            (Word::ParentOn, true, false, true),
            (Word::ParentOff, true, false, false),
            (Word::ParentRatio, true, false, true),
            (Word::Ratio, true, true, true),
        ] {
            let settings = TelemetrySettings { sampler, ..TelemetrySettings::default() };
            let found =
                [field("01"), field("00"), String::new()].map(|field| begin(&settings, &field, true).is_sampled());
            assert_eq!(found, [of_sampled, of_unsampled, without_parent], "{sampler}");
        }
    }

    #[test]
    fn work_for_a_request_gets_a_span_below_it_and_the_state() {
        let fields = [("traceparent", &*format!("00-{TRACE}-00f067aa0ba902b7-01")), ("tracestate", "a=1,b=2")];
        let trace = Contexts::new(&TelemetrySettings::default()).begin(&headers(&fields), true);
        assert_eq!(trace.parent_field(), format!("00-{TRACE}-{}-01", trace.inner));
        assert_eq!(trace.state_field().as_deref(), Some("a=1,b=2"));
        let fields = [("traceparent", fields[0].1), ("tracestate", "no state at all")];
        let trace = Contexts::new(&TelemetrySettings::default()).begin(&headers(&fields), true);
        assert_eq!((trace.id().to_string().as_str(), trace.state_field()), (TRACE, None));
    }
}
