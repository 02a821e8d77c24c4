//! Findings of a snapshot pool's warm-up, and the advice to set one.

use crate::config::PoolConfig;
use crate::lane::Lane;
use howdah_transport::Mode;
use howdah_transport::wire::EncodedRequest;
use howdah_transport::zygote_protocol::{Finding, WarmUpRequest};

/// Number of a worker's requests after which its restores are judged.
const REQUESTS_TO_JUDGE: u64 = 50;

/// Encodes the request for a path; the error explains why the path does not reach the pool. Called again for each
/// generation, as files may have changed.
pub type EncodeWarmUp = Box<dyn Fn(&str) -> Result<EncodedRequest, String> + Send + Sync>;

/// Findings of a generation's warm-up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WarmUp {
    /// The warm-up was refused, so the pool serves without it.
    pub(crate) refused: bool,
    /// Messages for the operator.
    pub(crate) findings: Vec<String>,
}

impl WarmUp {
    /// Encodes the requests that warm up a generation.
    pub(crate) fn requests(
        &mut self,
        config: &PoolConfig,
        learnt: &[String],
        encode: &EncodeWarmUp,
    ) -> Vec<WarmUpRequest> {
        let mut requests = Vec::new();
        for target in config.warmup().iter().chain(learnt) {
            match encode(target) {
                Ok(request) => requests.push(WarmUpRequest { target: target.clone(), words: request.to_words() }),
                Err(why) => {
                    let text = format!("{target} is not requested: {why}");
                    self.note(config.name(), false, vec![Finding { is_error: true, text }]);
                }
            }
        }
        requests
    }

    /// Logs and keeps a boot's findings. Findings of a later boot without warm-up are added.
    pub(crate) fn note(&mut self, name: &str, refused: bool, findings: Vec<Finding>) {
        for finding in &findings {
            if finding.is_error {
                tracing::error!(pool = name, "warm-up: {}", finding.text);
            } else {
                tracing::info!(pool = name, "warm-up: {}", finding.text);
            }
        }
        if refused {
            tracing::error!(pool = name, "serving without warm-up; see docs/guide/snapshot.md, \"Warm-up\"");
        }
        self.refused |= refused;
        self.findings.extend(findings.into_iter().map(|finding| finding.text));
        self.findings.sort();
        self.findings.dedup();
    }
}

/// Logs that a snapshot pool restores slowly for lack of a warm-up. Returns `true` if it did.
pub(crate) fn advise<'a>(config: &PoolConfig, mut lanes: impl Iterator<Item = &'a Lane>) -> bool {
    if config.settings.mode != Mode::Snapshot || !config.warmup().is_empty() || config.learns() {
        return false;
    }
    let searches = |lane: &Lane| lane.snapshot.map_or(0, |snapshot| u64::from(snapshot.searches));
    let slow = |lane: &Lane| lane.requests >= REQUESTS_TO_JUDGE && searches(lane) * 2 > lane.requests;
    let wanted = lanes.any(slow);
    if wanted {
        tracing::info!(
            pool = config.name(),
            "most requests map memory or load code, which makes restores slow: set `warmup` to typical paths; see docs/guide/snapshot.md"
        );
    }
    wanted
}
