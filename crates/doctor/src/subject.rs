//! An application in one mode: its server and the probe's records.

use crate::client::{Client, Request, Response};
use crate::compare::Words;
use crate::mode::Mode;
use crate::pages::Page;
use crate::server::Server;
use crate::state::Record;
use crate::visitor::Visitor;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Data that the probe records for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeScope {
    /// The complete state.
    Full,
    /// Only the memory in use.
    Memory,
}

/// An application running in one mode.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) mode: Mode,
    pub(crate) server: Server,
    client: &'a Client,
    host: String,
    /// Directory of the application.
    project: PathBuf,
    report: PathBuf,
    /// `true` if a recipe's kernel serves all pages.
    pub(crate) one_kernel: bool,
    /// Number of bytes of the report that have been read.
    read: u64,
    requests: u64,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(
        mode: Mode,
        server: Server,
        client: &'a Client,
        host: &str,
        report: PathBuf,
        project: &Path,
    ) -> Self {
        Self {
            mode,
            server,
            client,
            host: host.to_owned(),
            project: project.to_owned(),
            report,
            one_kernel: false,
            read: 0,
            requests: 0,
        }
    }

    /// `true` for files of the application, other than libraries and generated files.
    pub(crate) fn is_own(&self, file: Option<&str>) -> bool {
        let inside = file.and_then(|file| Path::new(file).strip_prefix(&self.project).ok());
        let is_other = |name: &std::ffi::OsStr| name == "vendor" || name == "cache";
        inside.is_some_and(|file| !file.iter().any(is_other))
    }

    fn tag(&mut self, what: &str) -> (u64, String) {
        self.requests += 1;
        (self.requests, format!("{} {what}", self.requests))
    }

    fn words(&self, response: &Response) -> Words {
        Words::of(response.status, &response.headers, &response.body, Some(self.server.port()))
    }

    /// Requests a page; returns the request's id in the probe's records, and the response.
    pub(crate) fn visit(&mut self, visitor: &mut Visitor, page: &Page, look: ProbeScope) -> (u64, Words) {
        let (id, response) = self.response(visitor, page, look);
        (id, self.words(&response))
    }

    pub(crate) fn response(&mut self, visitor: &mut Visitor, page: &Page, look: ProbeScope) -> (u64, Response) {
        let (id, tag) = self.tag(if look == ProbeScope::Full { "full" } else { "memory" });
        let response = self.client.send(self.server.port(), &visitor.request(page, &self.host, &tag));
        visitor.take(&response);
        (id, response)
    }

    /// Sends several requests at the same time.
    pub(crate) fn visit_at_once(&mut self, visits: Vec<(&mut Visitor, &Page)>) -> Vec<Words> {
        let requests: Vec<Request> = visits
            .iter()
            .map(|(visitor, page)| {
                let (_, tag) = self.tag("memory");
                visitor.request(page, &self.host, &tag)
            })
            .collect();
        let responses = self.client.send_all(self.server.port(), &requests);
        visits.into_iter().zip(&responses).for_each(|((visitor, _), response)| visitor.take(response));
        responses.iter().map(|response| self.words(response)).collect()
    }

    /// Makes the probe record the state that the last request left. Returns the id of the record.
    pub(crate) fn look(&mut self, page: &Page) -> u64 {
        let (id, tag) = self.tag("look");
        self.client.send(self.server.port(), &Visitor::new(0).request(page, &self.host, &tag));
        id
    }

    /// Starts a new process in modes whose processes serve several requests.
    pub(crate) fn begin_anew(&mut self, page: &Page) {
        match self.mode {
            Mode::Classic | Mode::Snapshot => {}
            Mode::Worker => {
                let (_, tag) = self.tag("end");
                let done = self.client.send(self.server.port(), &Visitor::new(0).request(page, &self.host, &tag));
                if done.status != 204 {
                    self.server.end_workers();
                }
            }
            // In async mode, a script's loop does not end while the server runs.
            Mode::Async => self.server.end_workers(),
        }
    }

    /// Reads the probe's records since the last call.
    pub(crate) fn records(&mut self) -> Result<Vec<Record>> {
        let mut file = File::open(&self.report).with_context(|| format!("cannot read {}", self.report.display()))?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = String::new();
        self.read += file.read_to_string(&mut text)? as u64;
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}
