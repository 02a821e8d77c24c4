//! The access logs of a server: one per destination and format. Sites that name the same ones share a log.

use std::io;
use std::sync::Arc;

use howdah_config::{AccessTarget, LogFormat, LogSettings, Settings};

use crate::access_log::AccessLog;
use crate::metrics::Metrics;

/// All access logs of the server; empty if none is configured.
#[derive(Debug, Default, Clone)]
pub struct AccessLogs(Vec<(AccessTarget, LogFormat, Arc<AccessLog>)>);

impl AccessLogs {
    /// Opens the logs of the settings, with a thread for each.
    ///
    /// # Errors
    /// When a file cannot be opened or a thread cannot be started; the error names the file.
    pub fn open(settings: &Settings, metrics: &Arc<Metrics>) -> io::Result<Self> {
        Self::default().open_for(settings, metrics)
    }

    /// Opens the logs of new settings; logs that are already open continue.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_for(&self, settings: &Settings, metrics: &Arc<Metrics>) -> io::Result<Self> {
        let mut logs = Self::default();
        for own in [&settings.log].into_iter().chain(settings.sites.iter().map(|site| &site.log)) {
            if logs.of(own).is_some() {
                continue;
            }
            if let Some(log) = self.of(own) {
                logs.0.push((own.access.clone(), own.format, log));
            } else if let Some(log) = AccessLog::open(own, metrics.clone()).map_err(|error| named(own, &error))? {
                logs.0.push((own.access.clone(), own.format, Arc::new(log)));
            }
        }
        Ok(logs)
    }

    /// The log for requests with these settings.
    pub fn of(&self, settings: &LogSettings) -> Option<Arc<AccessLog>> {
        let fits = |(target, format, _): &&(AccessTarget, LogFormat, Arc<AccessLog>)| {
            *target == settings.access && *format == settings.format
        };
        self.0.iter().find(fits).map(|(_, _, log)| log.clone())
    }

    /// Writes all queued lines; see `AccessLog::flush`.
    pub fn flush(&self) {
        for (_, _, log) in &self.0 {
            log.flush();
        }
    }

    /// Reopens every file, also after one has failed; see `AccessLog::reopen`.
    ///
    /// # Errors
    /// The first failure.
    pub fn reopen(&self) -> io::Result<()> {
        let failed = self.0.iter().filter_map(|(_, _, log)| log.reopen().err()).collect::<Vec<_>>();
        failed.into_iter().next().map_or(Ok(()), Err)
    }
}

fn named(settings: &LogSettings, error: &io::Error) -> io::Error {
    match &settings.access {
        AccessTarget::File(path) => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        AccessTarget::Off | AccessTarget::Stdout | AccessTarget::Stderr | AccessTarget::Service(_) => {
            io::Error::new(error.kind(), error.to_string())
        }
    }
}
