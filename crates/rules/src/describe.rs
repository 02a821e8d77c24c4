//! Descriptions of rules for `howdah check` and `howdah explain`.

use crate::rule::{Action, Rule, Share, Try};

impl Rule {
    pub fn describe_actions(&self) -> Vec<String> {
        self.actions.iter().map(Action::describe).filter(|text| !text.is_empty()).collect()
    }

    /// `true` if an action uses a capture of the path's pattern.
    pub(crate) fn wants_captures(&self) -> bool {
        self.actions.iter().any(|action| match action {
            Action::Rewrite(template, _) | Action::Redirect(template, _, _) => template.wants_captures(),
            Action::TryFiles(list) => {
                list.iter().any(|attempt| matches!(attempt, Try::Path(template) if template.wants_captures()))
            }
            _ => false,
        })
    }

    /// Description of its conditions.
    pub fn describe_conditions(&self) -> String {
        let of = |conditions: &crate::Conditions, sign: &str| {
            let texts = crate::conditions::KEYS.map(|key| (key, conditions.describe(key)));
            let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
            texts.map(|(key, text)| format!("{} {sign} {text}", key.word())).collect::<Vec<_>>()
        };
        let all = [of(&self.conditions, "is"), of(&self.not, "is not")].concat();
        if all.is_empty() { "every request".to_owned() } else { all.join(", ") }
    }
}

impl Action {
    /// Description of its action.
    pub fn describe(&self) -> String {
        let on = |on: &bool| if *on { "on" } else { "off" };
        match self {
            Self::Place(place) if place.mount.is_empty() => format!("root {}", place.directory.display()),
            Self::Place(place) => format!("alias {} for {}", place.directory.display(), place.mount),
            Self::Index(names) => format!("index {}", names.join(" ")),
            Self::FrontController(Some(script)) => format!("front controller {script}"),
            Self::FrontController(None) => "no front controller".to_owned(),
            Self::TryFiles(list) => {
                let texts: Vec<String> = list.iter().map(describe_try).collect();
                format!("try {}", texts.join(" "))
            }
            Self::Php(php) => format!("PHP {}", on(php)),
            Self::Allow(list) => format!("allow only {}", join(list)),
            Self::Deny(list) => format!("deny {}", join(list)),
            Self::Limit(_) => "limit requests".to_owned(),
            Self::Auth(Some(_)) => "ask for a password".to_owned(),
            Self::Auth(None) => "ask for no password".to_owned(),
            Self::RequestHeader(name, Some(_)) => format!("set request header {name}"),
            Self::RequestHeader(name, None) => format!("remove request header {name}"),
            Self::Variable(name, _) => format!("set variable {name}"),
            Self::Response(change) => change.describe(),
            Self::Cors(_) => "allow other origins".to_owned(),
            Self::Mime(mime) => {
                format!("media types of {}", mime.0.iter().map(|(ending, _)| &**ending).collect::<Vec<_>>().join(" "))
            }
            Self::ErrorPages(pages) => {
                format!("error pages {}", pages.0.iter().map(|(_, page)| &**page).collect::<Vec<_>>().join(" "))
            }
            Self::Listing(listing) => format!("listing {}", on(listing)),
            Self::Links(to) => {
                format!("follow links to {}", to.iter().map(|to| to.to_string_lossy()).collect::<Vec<_>>().join(" "))
            }
            Self::Route(route) => {
                let share = route.share.unwrap_or(Share { number: 0, workers: 0, weight: 1 });
                let workers = (share.workers > 0).then(|| format!("at most {} requests at once", share.workers));
                let weight = (share.weight > 1).then(|| format!("weight {}", share.weight));
                workers.into_iter().chain(weight).collect::<Vec<_>>().join(", ")
            }
            Self::Pool(pool) => format!("pool {pool}"),
            Self::WebSocket(script) => format!("WebSocket connections: events to {script}"),
            Self::Times(times) => {
                let named = [("deadline", times.deadline), ("wait", times.queue)];
                let said = named.iter().filter_map(|(name, time)| Some(format!("{name} {:?}", (*time)?)));
                said.collect::<Vec<_>>().join(", ")
            }
            Self::MaxBody(bytes) => format!("bodies up to {bytes} bytes"),
            Self::AccessLog(log) => format!("access log {}", on(log)),
            Self::Rewrite(template, _) => format!("rewrite to {}", template.as_str()),
            Self::Redirect(template, _, status) => {
                format!("redirect to {} with {}", template.as_str(), status.as_u16())
            }
            Self::Status(status, _) => format!("status {}", status.as_u16()),
            Self::Maintenance(_) => "maintenance".to_owned(),
            Self::Proxy(name) => format!("forward to {name}"),
        }
    }
}

fn describe_try(attempt: &Try) -> String {
    match attempt {
        Try::Path(template) => template.as_str().to_owned(),
        Try::Status(status) => format!("={}", status.as_u16()),
    }
}

fn join(list: &[ipnet::IpNet]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
