//! Turns the user's request into a plan. Every mistake is found here, before anything starts.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::cases::{App, Case, Expect, catalogue, suites};
use crate::names::nearest;
use crate::record::SystemStatus;
use crate::systems::{self, System};

/// The user's request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `--suite`.
    pub suite: Option<String>,
    /// `--systems`.
    pub systems: Vec<String>,
    /// `--cases`.
    pub cases: Vec<String>,
    /// `--rounds`.
    pub rounds: Option<u32>,
    /// `--duration`.
    pub seconds: Option<f64>,
    /// `--warmup`.
    pub warmup: Option<f64>,
    /// `--jit`.
    pub jit: bool,
    /// `--no-latency`.
    pub no_latency: bool,
    /// `--workers`.
    pub workers: Option<u32>,
    /// `--connections`.
    pub connections: Option<u32>,
    /// `--app`.
    pub app: Option<PathBuf>,
    /// `--path`.
    pub paths: Vec<String>,
    /// `--skip`.
    pub skip: Vec<String>,
    /// `--system-file`.
    pub system_files: Vec<PathBuf>,
}

/// The measurements to make.
pub struct Plan {
    /// Name of the suite, for the results.
    pub suite: String,
    /// The found systems, and the missing ones, in order.
    pub systems: Vec<(Box<dyn System>, SystemStatus)>,
    /// The cases, in order.
    pub cases: Vec<Case>,
    pub rounds: u32,
    /// Seconds of each measured run.
    pub seconds: f64,
    /// Seconds of load before it.
    pub warmup: f64,
    /// True if latency is measured at a constant rate.
    pub latency: bool,
    /// Pairs of system and case that are skipped.
    pub skipped: BTreeSet<(String, String)>,
    /// The user's application.
    pub app: Option<PathBuf>,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let systems: Vec<String> = self.systems.iter().map(|(system, _)| system.id()).collect();
        f.debug_struct("Plan")
            .field("suite", &self.suite)
            .field("systems", &systems)
            .field("cases", &self.cases)
            .finish_non_exhaustive()
    }
}

fn unknown(kind: &str, typed: &str, known: &[String]) -> anyhow::Error {
    match nearest(typed, known.iter().map(String::as_str)) {
        Some(name) => anyhow::anyhow!("unknown {kind} {typed:?}, did you mean {name:?}?"),
        None => anyhow::anyhow!("unknown {kind} {typed:?}; known are: {}", known.join(", ")),
    }
}

/// Turns a request into a plan.
pub fn plan(request: &Request) -> Result<Plan> {
    let suite = pick_suite(request)?;
    let mut cases = if request.app.is_some() { user_cases(request)? } else { pick_cases(request, &suite)? };
    if request.connections.is_some()
        && let Some(case) = cases.iter().find(|case| case.mix.is_some())
    {
        bail!("{}: the connections of a mixed load belong to it; --connections is for the other cases", case.id);
    }
    for case in &mut cases {
        case.workers = request.workers.unwrap_or(case.workers);
        case.connections = request.connections.unwrap_or(case.connections);
        case.jit |= request.jit;
    }
    if let Some(case) = cases.iter().find(|case| case.workers == 0 || case.connections == 0) {
        bail!("{}: workers and connections must be at least 1", case.id);
    }
    let systems = pick_systems(request, &suite)?;
    let skipped = pick_skipped(&request.skip, &systems, &cases)?;
    let rounds = request.rounds.unwrap_or(suite.rounds);
    let seconds = request.seconds.unwrap_or(suite.seconds);
    if rounds == 0 || seconds < 1.0 {
        bail!("at least one round of at least one second is needed");
    }
    Ok(Plan {
        suite: if request.app.is_some() { "app".into() } else { suite.name.into() },
        systems,
        cases,
        rounds,
        seconds,
        warmup: request.warmup.unwrap_or(suite.warmup),
        latency: suite.latency && !request.no_latency,
        skipped,
        app: request.app.clone(),
    })
}

/// Returns `true` if a name equals the pattern, or matches it around its `*`.
fn fits(pattern: &str, id: &str) -> bool {
    match pattern.split_once('*') {
        Some((head, tail)) => id.len() >= head.len() + tail.len() && id.starts_with(head) && id.ends_with(tail),
        None => pattern == id,
    }
}

/// Parses `SYSTEM:CASE`, where each may have one `*`.
fn pick_skipped(
    typed: &[String],
    systems: &[(Box<dyn System>, SystemStatus)],
    cases: &[Case],
) -> Result<BTreeSet<(String, String)>> {
    let mut skipped = BTreeSet::new();
    for pair in typed {
        let Some((system, case)) = pair.split_once(':') else {
            bail!("--skip {pair:?} must be SYSTEM:CASE, each with at most one *");
        };
        let before = skipped.len();
        for (a_system, _) in systems.iter().filter(|(a_system, _)| fits(system, &a_system.id())) {
            let those = cases.iter().filter(|a_case| fits(case, &a_case.id));
            skipped.extend(those.map(|a_case| (a_system.id(), a_case.id.clone())));
        }
        if skipped.len() == before {
            bail!("--skip {pair:?} leaves out nothing (more) of what would be measured");
        }
    }
    Ok(skipped)
}

fn pick_suite(request: &Request) -> Result<suites::Suite> {
    match &request.suite {
        Some(name) => suites::find(name).copied().ok_or_else(|| {
            let names: Vec<String> = suites::ALL.iter().map(|suite| suite.name.to_owned()).collect();
            unknown("suite", name, &names)
        }),
        None if request.cases.is_empty() && request.app.is_none() => Ok(suites::ALL[0]),
        None => Ok(suites::CUSTOM),
    }
}

fn pick_cases(request: &Request, suite: &suites::Suite) -> Result<Vec<Case>> {
    if !request.paths.is_empty() {
        bail!("--path belongs to --app DIR; the lab's own cases have their own paths");
    }
    let all = catalogue::all();
    let known: Vec<String> = all.iter().map(|case| case.id.clone()).collect();
    let wanted: Vec<String> = if !request.cases.is_empty() {
        request.cases.clone()
    } else if suite.cases.is_empty() {
        all.iter().filter(|case| case.mix.is_none()).map(|case| case.id.clone()).collect()
    } else {
        suite.cases.iter().map(|id| (*id).to_owned()).collect()
    };
    let mut picked: Vec<Case> = Vec::new();
    for id in &wanted {
        let case = all.iter().find(|case| &case.id == id).ok_or_else(|| unknown("case", id, &known))?;
        // An open loop at a share of a capacity needs the measurement of that capacity in the same run.
        let capacity = case.mix.as_ref().and_then(|mix| mix.capacity_case());
        if let Some((of, _)) = capacity
            && !picked.iter().any(|before| before.id == of)
        {
            picked.extend(all.iter().find(|case| case.id == of).cloned());
        }
        if !picked.iter().any(|before| before.id == case.id) {
            picked.push(case.clone());
        }
    }
    Ok(picked)
}

fn user_cases(request: &Request) -> Result<Vec<Case>> {
    if !request.cases.is_empty() {
        bail!("--cases names the lab's own cases; for your application use --path");
    }
    let paths = if request.paths.is_empty() { vec!["/".to_owned()] } else { request.paths.clone() };
    paths
        .iter()
        .map(|path| {
            if !path.starts_with('/') || path.contains(|c: char| c.is_whitespace() || c.is_control()) {
                bail!("--path {path:?} must start with / and contain no blanks");
            }
            let about = "a path of the application that was given with --app";
            Ok(Case { app: App::User, ..Case::script(path, path, about, Expect::Success).path(path) })
        })
        .collect()
}

fn pick_systems(request: &Request, suite: &suites::Suite) -> Result<Vec<(Box<dyn System>, SystemStatus)>> {
    let mut all = systems::builtin();
    for file in &request.system_files {
        let custom = systems::custom::Custom::read(file)?;
        if all.iter().any(|system| system.id() == custom.id()) {
            bail!("{}: there is already a system called {:?}", file.display(), custom.id());
        }
        all.push(Box::new(custom));
    }
    let known: Vec<String> = all.iter().map(|system| system.id()).collect();
    let explicit = !request.systems.is_empty();
    let mut wanted = match (explicit, suite.systems) {
        (true, _) => request.systems.clone(),
        (false, []) => known.clone(),
        (false, some) => some.iter().map(|id| (*id).to_owned()).collect(),
    };
    if !explicit {
        let custom: Vec<String> = known[known.len() - request.system_files.len()..].to_vec();
        wanted.extend(custom.into_iter().filter(|id| !wanted.contains(id)).collect::<Vec<_>>());
    }
    all.extend(wanted.iter().filter_map(|id| Some(Box::new(systems::howdah::Howdah::at_path(id)?) as Box<dyn System>)));
    let mut picked = Vec::new();
    for id in &wanted {
        let Some(at) = all.iter().position(|system| &system.id() == id) else {
            if picked.iter().any(|(system, _): &(Box<dyn System>, SystemStatus)| &system.id() == id) {
                bail!("system {id:?} is named twice");
            }
            return Err(unknown("system", id, &known));
        };
        let system = all.remove(at);
        let status = system.find();
        if let (SystemStatus::Missing { what, how }, true) = (&status, explicit) {
            bail!("system {id:?}: {what} is missing; to get it: {how}");
        }
        picked.push((system, status));
    }
    if picked.iter().all(|(_, status)| matches!(status, SystemStatus::Missing { .. })) {
        bail!("none of these systems is on this machine: {}. See `howdah-lab doctor`", wanted.join(", "));
    }
    Ok(picked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(request: &Request) -> String {
        plan(request).unwrap_err().to_string()
    }

    #[test]
    fn unknown_names_get_the_nearest_known() {
        let request = Request { cases: vec!["helo".into()], ..Request::default() };
        assert_eq!(error(&request), "unknown case \"helo\", did you mean \"hello\"?");
        let request = Request { suite: Some("smok".into()), ..Request::default() };
        assert_eq!(error(&request), "unknown suite \"smok\", did you mean \"smoke\"?");
        let request = Request { systems: vec!["apace".into()], ..Request::default() };
        assert_eq!(error(&request), "unknown system \"apace\", did you mean \"apache\"?");
        let request = Request { cases: vec!["qqq".into()], ..Request::default() };
        assert!(error(&request).contains("known are: hello,"));
    }

    #[test]
    fn impossible_numbers_are_refused() {
        let request = Request { cases: vec!["hello".into()], rounds: Some(0), ..Request::default() };
        assert!(plan(&request).is_err());
        let request = Request { cases: vec!["hello".into()], workers: Some(0), ..Request::default() };
        assert!(error(&request).contains("at least 1"));
    }

    #[test]
    fn pairs_are_left_out_by_name_or_star() {
        let systems =
            || systems::builtin().into_iter().map(|system| (system, systems::missing("x", "y"))).collect::<Vec<_>>();
        let cases: Vec<Case> = catalogue::all().into_iter().filter(|case| case.id.starts_with("hello")).collect();
        let picked = |pairs: &[&str]| {
            let typed: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
            pick_skipped(&typed, &systems(), &cases)
        };
        assert_eq!(picked(&["swoole:hello"]).unwrap(), [("swoole".to_owned(), "hello".to_owned())].into());
        assert_eq!(picked(&["*:hello"]).unwrap().len(), systems().len());
        assert_eq!(picked(&["swoole:*"]).unwrap().len(), cases.len());
        assert_eq!(picked(&["swoole:*-c100", "*swoole:hello-c100"]).unwrap().len(), 2);
        assert!(picked(&["swoole"]).unwrap_err().to_string().contains("SYSTEM:CASE"));
        assert!(picked(&["swoole:helo"]).unwrap_err().to_string().contains("nothing"));
    }

    #[test]
    fn an_open_loop_adds_the_case_that_measures_its_capacity() {
        let cases = |typed: &[&str]| {
            let cases = typed.iter().map(|id| (*id).to_owned()).collect();
            let request = Request { cases, systems: Vec::new(), ..Request::default() };
            let picked = pick_cases(&request, &suites::CUSTOM).unwrap();
            picked.into_iter().map(|case| case.id).collect::<Vec<_>>()
        };
        assert_eq!(cases(&["open-80", "hello", "open-50"]), ["open-capacity", "open-80", "hello", "open-50"]);
        assert_eq!(cases(&["overload-10", "overload-capacity"]), ["overload-capacity", "overload-10"]);
        let every = pick_cases(&Request::default(), suites::find("all").unwrap()).unwrap();
        assert!(every.iter().all(|case| case.mix.is_none()), "suite all is about one kind of request at a time");
    }

    #[test]
    fn the_connections_of_a_mixed_load_belong_to_it() {
        let request = Request { cases: vec!["mix-both".into()], connections: Some(5), ..Request::default() };
        assert!(error(&request).contains("mix-both: the connections of a mixed load"));
    }

    #[test]
    fn paths_belong_to_an_app() {
        let request = Request { paths: vec!["/x".into()], ..Request::default() };
        assert!(error(&request).contains("--app"));
        let request = Request { app: Some("/srv".into()), paths: vec!["x y".into()], ..Request::default() };
        assert!(error(&request).contains("must start with /"));
    }
}
