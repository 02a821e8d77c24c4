//! One run, from an application to a report.

use crate::client::Client;
use crate::compare::Words;
use crate::cost::{self, Cost};
use crate::findings::Finding;
use crate::interleaved::{self, Differing, Plan};
use crate::interrupted;
use crate::isolated;
use crate::mode::Mode;
use crate::pages::{self, Page};
use crate::place::Place;
use crate::server::{Server, free_port};
use crate::settings::{Boot, ServerParams, Settings};
use crate::subject::{ProbeScope, Subject};
use crate::verdict::{self, ModeReport, Report};
use crate::visitor::Visitor;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of differing pages per mode whose causes are searched.
const MAX_VICTIMS: usize = 20;

#[derive(Debug, Clone)]
pub struct Options {
    /// The `howdah` program.
    pub program: PathBuf,
    /// The application's name.
    pub application: String,
    /// Complete settings of the application, as TOML.
    pub settings: String,
    /// Directory of the application, including everything that it writes to.
    pub project: PathBuf,
    /// Users, other than the doctor's, that the server and its pools switch to.
    pub users: Vec<u32>,
    /// A list of pages or an access log; without one, links are followed.
    pub list: Option<PathBuf>,
    /// Maximum number of pages.
    pub pages: usize,
    pub visitors: usize,
    pub modes: Vec<Mode>,
    /// `true` if requests of the list may write.
    pub writes: bool,
    /// Destination for the worker loop that an application without a worker script was tested with.
    pub write_loop: Option<PathBuf>,
    /// An earlier report to compare with.
    pub last: Option<Report>,
    /// Receives progress messages.
    pub progress: fn(&str),
}

/// State shared by all steps of a run.
pub(crate) struct Run<'a> {
    options: &'a Options,
    settings: Settings,
    place: Place,
    client: &'a Client,
    /// Host of requests to the application.
    pub(crate) host: String,
}

/// Tests an application.
///
/// # Errors
/// The application cannot be tested at all.
pub fn run(options: &Options) -> Result<Report> {
    if options.visitors < 2 {
        bail!("--visitors: at least 2, because a leak is what one visitor sees of another");
    }
    interrupted::watch()?;
    let client = Client::new()?;
    let run = Run::new(options, &client)?;
    let mut classic = run.start(Mode::Classic, "classic", false)?;
    let pages = run.find_pages(&mut classic)?;
    let mut modes = Vec::new();
    let mut samples = vec![Vec::new(); pages.len()];
    for mode in &options.modes {
        modes.push(run.try_mode(*mode, &mut classic, &pages, &mut samples)?);
    }
    drop(classic);
    run.complete(pages, modes)
}

impl<'a> Run<'a> {
    pub(crate) fn new(options: &'a Options, client: &'a Client) -> Result<Self> {
        let settings = Settings::read(&options.settings)?;
        let host = settings.host();
        let place = Place::new(&options.project, &options.users)?;
        Ok(Self { options, settings, place, client, host })
    }

    pub(crate) fn start(&self, mode: Mode, name: &str, probed: bool) -> Result<Subject<'a>> {
        self.start_with(mode, name, probed, &[], 1)
    }

    /// Starts classic mode for several requests at the same time.
    pub(crate) fn start_for_copies(&self, workers: u32) -> Result<Subject<'a>> {
        self.start_with(Mode::Classic, "classic", false, &[], workers)
    }

    /// `learnt`: warm-up paths that a recipe's pool would have learnt.
    fn start_with(&self, mode: Mode, name: &str, probed: bool, learnt: &[String], workers: u32) -> Result<Subject<'a>> {
        self.place.restore_databases()?;
        let room = self.place.room(name)?;
        let port = free_port()?;
        let config =
            self.settings.write(&ServerParams { mode, port, room: &room, probed, learnt, workers }, &self.place)?;
        let report = self.place.report(&room)?;
        let server = Server::start(&self.options.program, &config, port)?;
        Ok(Subject::new(mode, server, self.client, &self.host, report, self.place.application()))
    }

    pub(crate) fn find_pages(&self, classic: &mut Subject<'_>) -> Result<Vec<Page>> {
        let most = self.options.pages;
        let pages = match &self.options.list {
            Some(list) => pages::listed(list, most, self.options.writes)?,
            None => {
                (self.options.progress)("following links from /");
                let mut visitor = Visitor::new(1);
                pages::crawled(&self.host, most, |page| classic.response(&mut visitor, page, ProbeScope::Memory).1)?
            }
        };
        let mut visitor = Visitor::new(1);
        let mut fail = 0;
        for page in &pages {
            interrupted::check()?;
            let (_, response) = classic.response(&mut visitor, page, ProbeScope::Memory);
            fail += usize::from(response.status == 0 || response.status >= 500);
        }
        if fail == pages.len() {
            bail!("no page works in classic mode; the server's log:\n{}", classic.server.last_words());
        }
        Ok(pages)
    }

    /// Name of the script or boot file of a mode, for the report.
    fn script(&self, mode: Mode) -> String {
        let own = self.settings.script().or(self.settings.boot().filter(|_| mode == Mode::Snapshot));
        match (self.settings.boots(mode), own) {
            (Boot::Own, Some(own)) => own.to_owned(),
            (Boot::Recipe(name), _) => format!("recipe {name}"),
            _ if mode == Mode::Snapshot => {
                let autoloader = self.settings.autoloader();
                if autoloader.as_os_str().is_empty() { "boot.php".to_owned() } else { autoloader.display().to_string() }
            }
            _ => match &self.options.write_loop {
                Some(path) => path.display().to_string(),
                None => verdict::LOOP.to_owned(),
            },
        }
    }

    /// `samples` are classic mode's responses to each page so far.
    fn try_mode(
        &self,
        mode: Mode,
        classic: &mut Subject<'_>,
        pages: &[Page],
        samples: &mut [Vec<Vec<Words>>],
    ) -> Result<ModeReport> {
        let routes: Vec<String> = pages.iter().map(Page::name).collect();
        let mut report = ModeReport {
            mode,
            script: self.script(mode),
            recipe: match self.settings.boots(mode) {
                Boot::Recipe(name) => Some(name.to_owned()),
                _ => None,
            },
            fails: None,
            safe: vec![false; pages.len()],
            costs: Vec::new(),
            findings: Vec::new(),
        };
        let mut subject = match self.start(mode, mode.name(), true) {
            Ok(subject) => subject,
            Err(error) => {
                report.fails = Some(self.place.original(&format!("{error:#}")));
                return Ok(report);
            }
        };
        subject.one_kernel = report.recipe.is_some();
        let (_, first) = subject.response(&mut Visitor::new(1), &pages[0], ProbeScope::Memory);
        if first.status == 503 {
            report.fails = Some(self.place.original(&subject.server.last_words()));
            return Ok(report);
        }
        let mut findings = Vec::new();
        for (at, page) in pages.iter().enumerate() {
            (self.options.progress)(&format!("{mode}: {} of {}: {}", at + 1, pages.len(), page.name()));
            let other = if at == 0 { pages.get(1).unwrap_or(page) } else { &pages[0] };
            interrupted::check()?;
            if samples[at].is_empty() {
                samples[at].push(isolated::expected(classic, other, page));
            }
            findings.extend(isolated::examine(classic, &mut subject, other, page, &mut samples[at])?);
        }
        (self.options.progress)(&format!("{mode}: all pages by {} visitors in turn", self.options.visitors));
        findings.extend(self.try_together(classic, &mut subject, pages, &findings)?);
        drop(subject);
        report.findings = self.without_doubles(findings);
        report.safe = verdict::safe(&routes, &report.findings);
        Ok(report)
    }

    fn try_together(
        &self,
        classic: &mut Subject<'_>,
        subject: &mut Subject<'_>,
        pages: &[Page],
        known: &[Finding],
    ) -> Result<Vec<Finding>> {
        let plan = Plan::new(pages, self.options.visitors);
        let before = plan.run(classic);
        subject.records()?;
        let here = plan.run(subject);
        let mut findings = plan.overwritten(subject)?;
        let after = plan.run(classic);
        let of_themselves: BTreeSet<&str> = known
            .iter()
            .filter(|found| found.is_leak() && found.seen_on.is_none())
            .filter(is_response)
            .map(|f| f.route.as_str())
            .collect();
        let differing = plan.differing(&[before, after], &here);
        let victims = differing.iter().filter(|(page, _)| !of_themselves.contains(pages[**page].name().as_str()));
        // Equal differences have one cause, such as a setting that every page shows.
        let mut alike: Vec<(usize, &Differing, usize)> = Vec::new();
        for (page, seen) in victims {
            match alike.iter_mut().find(|(_, other, _)| other.difference == seen.difference) {
                Some((_, _, more)) => *more += 1,
                None => alike.push((*page, seen, 0)),
            }
        }
        let leaking: BTreeSet<&str> =
            known.iter().filter(|found| found.is_leak()).map(|found| found.route.as_str()).collect();
        interrupted::check()?;
        for (page, differing, more) in alike.into_iter().take(MAX_VICTIMS) {
            (self.options.progress)(&format!("{}: finding the page that changes {}", subject.mode, pages[page].name()));
            interrupted::check()?;
            let mut causes = interleaved::causes(classic, subject, pages, page, differing, &leaking);
            if more > 0 {
                causes
                    .iter_mut()
                    .for_each(|cause| cause.what.push_str(&format!("; {more} more pages differ in the same way")));
            }
            findings.extend(causes);
        }
        Ok(findings)
    }

    /// Measures pages in classic mode, and in the other modes that work.
    fn costs(&self, pages: &[Page], modes: &mut [ModeReport]) -> Result<Vec<Cost>> {
        interrupted::check()?;
        (self.options.progress)("measuring what each mode costs");
        let mut running: Vec<&mut ModeReport> = modes.iter_mut().filter(|mode| mode.fails.is_none()).collect();
        let names = [Mode::Classic].into_iter().chain(running.iter().map(|report| report.mode));
        let start = |mode: Mode| self.start_with(mode, &format!("{mode}-cost"), false, &pages::frequent(pages), 1);
        let mut subjects = names.map(start).collect::<Result<Vec<_>>>()?;
        let mut costs = cost::measure(&mut subjects, pages).into_iter();
        let classic = costs.next().unwrap_or_default();
        running.iter_mut().zip(costs).for_each(|(report, costs)| report.costs = costs);
        Ok(classic)
    }

    /// Removes duplicates, sorts the worst first, and translates paths to the original application.
    fn without_doubles(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let mut kept: Vec<Finding> = Vec::new();
        for mut finding in findings {
            finding.file = finding.file.map(|file| self.place.original(&file));
            finding.what = self.place.original(&finding.what);
            let is_same = |other: &&mut Finding| {
                other.same() == finding.same() || other.kind == "probe" && finding.kind == "probe"
            };
            match kept.iter_mut().find(is_same) {
                Some(other) if finding.severity < other.severity => *other = finding,
                Some(_) => {}
                None => kept.push(finding),
            }
        }
        kept.sort_by(|one, two| (one.severity, &one.route, &one.kind).cmp(&(two.severity, &two.route, &two.kind)));
        kept
    }

    fn complete(&self, pages: Vec<Page>, mut modes: Vec<ModeReport>) -> Result<Report> {
        let classic = self.costs(&pages, &mut modes)?;
        let routes: Vec<String> = pages.iter().map(Page::name).collect();
        let advice = verdict::advice(&routes, &classic, &modes, self.settings.script());
        let mut report = Report {
            version: 1,
            application: self.options.application.clone(),
            root: self.settings.root().display().to_string(),
            visitors: self.options.visitors,
            routes,
            classic,
            modes,
            advice,
            remarks: self.remarks(),
            new_leaks: None,
        };
        if let Some(last) = &self.options.last {
            report.new_leaks = Some(verdict::new_leaks(&report, last));
        }
        self.write_loop()?;
        Ok(report)
    }

    fn write_loop(&self) -> Result<()> {
        let Some(path) = &self.options.write_loop else { return Ok(()) };
        let text = self.place.original(&self.settings.loop_script(&self.place));
        write(path, &text)
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let made = |mode: Mode| self.options.modes.contains(&mode) && self.settings.boots(mode) == Boot::Made;
        let by_loop: Vec<&str> =
            [Mode::Worker, Mode::Async].into_iter().filter(|mode| made(*mode)).map(Mode::name).collect();
        if !by_loop.is_empty() {
            remarks.push(format!(
                "The application has no worker script: {} mode {} tried with a loop that runs the application's scripts \
                 one after the other; `--loop FILE` writes it.",
                by_loop.join(" and "),
                if by_loop.len() > 1 { "were" } else { "was" },
            ));
        }
        for mode in &self.options.modes {
            if let Boot::Recipe(name) = self.settings.boots(*mode) {
                remarks.push(format!("In {mode} mode the recipe {name} boots the application, as in `howdah serve`."));
            }
        }
        if self.options.modes.contains(&Mode::Snapshot)
            && matches!(self.settings.boots(Mode::Snapshot), Boot::Recipe(_))
        {
            remarks.push(
                "The cost of snapshot mode was measured after a warm-up with some of the pages above, as a server learns it \
                 from its traffic (`warmup_auto`)."
                    .to_owned(),
            );
        }
        if made(Mode::Snapshot) {
            remarks.push(
                "The application has no boot file: snapshot mode was tried with Composer's autoloader at most. With a \
                 boot file it may be faster."
                    .to_owned(),
            );
        }
        if self.place.is_copied() {
            remarks.push("The application has a SQLite database, so a copy of it was tried.".to_owned());
        }
        remarks.push("Only the pages above were tried.".to_owned());
        if self.settings.mode() != "classic" {
            remarks.push(format!("At present it runs in {} mode.", self.settings.mode()));
        }
        remarks
    }
}

fn is_response(found: &&Finding) -> bool {
    matches!(found.kind.as_str(), "response" | "differs" | "token")
}

/// Writes a file that the user requested.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
