//! What all requests share: the settings in the form in which the phases use them. Built once, read by all threads.

use crate::compress::Compressor;
use crate::handed_over::HandedOver;
use crate::phase::https::Https;
use crate::static_files::StaticFiles;
use crate::withheld::Withheld;
use howdah_budget::Budgets;
use howdah_config::{HttpSettings, Settings};
use howdah_observe::{AccessLog, Metrics};
use http::{HeaderName, HeaderValue};
use std::path::PathBuf;
use std::sync::Arc;

/// Limits on requests, from the settings.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest target, in bytes.
    pub max_uri: usize,
    /// The bytes of all header lines, as they came over the wire.
    pub max_header: usize,
    /// The largest body.
    pub max_body: u64,
}

impl Limits {
    /// The limits of the settings.
    #[must_use]
    pub fn new(settings: &HttpSettings) -> Self {
        Self {
            max_uri: settings.max_uri.as_usize(),
            max_header: settings.max_header_bytes.as_usize(),
            max_body: settings.max_body.bytes(),
        }
    }
}

/// Everything the phases need that does not change between requests.
#[derive(Debug)]
pub struct Site {
    /// The settings as they were loaded.
    pub settings: Arc<Settings>,
    /// The document root as PHP sees it (`DOCUMENT_ROOT`): absolute, without a slash at its end, symlinks unresolved.
    pub root: PathBuf,
    /// Limits on requests.
    pub limits: Limits,
    /// Where clients without TLS are sent.
    pub https: Https,
    /// What is never sent.
    pub withheld: Arc<Withheld>,
    /// What the static phase needs.
    pub static_files: StaticFiles,
    /// The files that scripts may hand over.
    pub handed_over: HandedOver,
    /// What encodes bodies.
    pub compressor: Compressor,
    /// What everything that waits is charged to.
    pub budgets: Budgets,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// The access log, if one is kept.
    pub access_log: Option<Arc<AccessLog>>,
    /// The value of `Server`.
    pub server_header: Option<HeaderValue>,
    /// The header that tells clients the request's id.
    pub request_id_header: Option<HeaderName>,
    /// Where request bodies are spooled.
    pub temp_dir: PathBuf,
    /// `SERVER_SOFTWARE`. Applications look for "nginx" in it to learn that addresses can be rewritten (WordPress).
    pub software: String,
}

impl Site {
    /// Derives a site from settings. An error names the setting and what is wrong with it.
    pub fn new(
        settings: Arc<Settings>,
        metrics: Arc<Metrics>,
        access_log: Option<Arc<AccessLog>>,
        budgets: Budgets,
    ) -> Result<Self, String> {
        let root = std::path::absolute(&settings.root)
            .map_err(|error| format!("root: cannot make {} absolute: {error}", settings.root.display()))?;
        match std::fs::metadata(&root) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(format!("root: {} is not a directory", root.display())),
            Err(error) => return Err(format!("root: cannot open {}: {error}", root.display())),
        }
        let server_header = settings.http.server_header.as_deref().filter(|name| !name.is_empty());
        let server_header = server_header
            .map(|value| HeaderValue::from_str(value).map_err(|_| "http.server_header: not a header value".to_owned()))
            .transpose()?;
        let request_id_header = settings.http.request_id_header.as_deref().filter(|name| !name.is_empty());
        let request_id_header = request_id_header
            .map(|name| name.parse().map_err(|_| format!("http.request_id_header: {name} is not a header name")))
            .transpose()?;
        let withheld = Arc::new(Withheld::new(&settings));
        metrics.set_budgets(budgets);
        Ok(Self {
            budgets,
            // Collecting the components drops a slash at the end and `.` components.
            root: root.components().collect(),
            limits: Limits::new(&settings.http),
            https: Https::new(&settings),
            static_files: StaticFiles::new(root.clone(), &settings.static_files, withheld.clone())
                .map_err(|error| format!("static: {error}"))?,
            handed_over: HandedOver::new(&settings.static_files, &withheld)?,
            withheld,
            compressor: Compressor::new(&settings.compression),
            metrics,
            access_log,
            server_header,
            request_id_header,
            temp_dir: settings.http.temp_dir.clone().unwrap_or_else(std::env::temp_dir),
            software: concat!("Howdah/", env!("CARGO_PKG_VERSION"), " (like nginx)").to_owned(),
            settings,
        })
    }
}
