//! The status page of a pool in the format of PHP-FPM 8.2: the same fields in the same order, in its five formats, so
//! that existing dashboards and exporters work. Waiting requests are reported as waiting connections.

use howdah_observe::log_time;
use howdah_pool::{PoolStatus, RequestReport, WorkerStatus};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

pub(crate) struct Page {
    pub(crate) media_type: &'static str,
    pub(crate) body: String,
}

enum Field {
    Text(String),
    Number(u64),
    /// Seconds since the epoch.
    Time(u64),
    Percent(f64),
}

type Fields = Vec<(&'static str, Field)>;

/// Renders the page for a pool in the format that the query selects.
pub(crate) fn page(pool: &PoolStatus, query: &[u8]) -> Page {
    let query = String::from_utf8_lossy(query);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let of_pool = pool_fields(pool, now);
    let full = query.contains("full");
    let processes: Vec<Fields> = match full {
        true => pool.workers.iter().map(|worker| worker_fields(worker, now)).collect(),
        false => Vec::new(),
    };
    let processes = full.then_some(processes.as_slice());
    let (media_type, body) = if query.contains("html") {
        ("text/html;charset=UTF-8", html(&of_pool, processes))
    } else if query.contains("xml") {
        ("text/xml;charset=UTF-8", xml(&of_pool, processes))
    } else if query.contains("json") {
        ("application/json", json(&of_pool, processes))
    } else if query.contains("openmetrics") {
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", openmetrics(pool, now))
    } else {
        ("text/plain;charset=UTF-8", text(&of_pool, processes))
    };
    Page { media_type, body }
}

/// The status for scripts: the result of PHP-FPM's `fpm_get_status()`, as JSON.
pub(crate) fn report(pool: &PoolStatus) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let object = |fields: &Fields| {
        let member = |(name, field): &(&str, Field)| match (*name, field) {
            ("request uri", Field::Text(uri)) => {
                let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
                let [path, query] = [path, query].map(serde_json::Value::from);
                format!("\"request-uri\":{path},\"query-string\":{query}")
            }
            ("content length", field) => format!("\"request-length\":{}", field.raw()),
            (name, field) => format!("\"{}\":{}", name.replace(' ', "-"), field.json()),
        };
        fields.iter().map(member).collect::<Vec<_>>().join(",")
    };
    let workers = pool.workers.iter().map(|worker| format!("{{{}}}", object(&worker_fields(worker, now))));
    let workers = workers.collect::<Vec<_>>().join(",");
    format!("{{{},\"procs\":[{workers}]}}", object(&pool_fields(pool, now)))
}

/// Returns the number of idle workers and of busy ones.
fn processes(pool: &PoolStatus) -> (u64, u64) {
    let busy = pool.workers.iter().filter(|worker| worker.busy).count() as u64;
    (pool.workers.len() as u64 - busy, busy)
}

fn pool_fields(pool: &PoolStatus, now: u64) -> Fields {
    let (idle, active) = processes(pool);
    vec![
        ("pool", Field::Text(pool.name.clone())),
        ("process manager", Field::Text(pool.manager.to_owned())),
        ("start time", Field::Time(pool.started)),
        ("start since", Field::Number(now.saturating_sub(pool.started))),
        ("accepted conn", Field::Number(pool.accepted)),
        ("listen queue", Field::Number(pool.queued as u64)),
        ("max listen queue", Field::Number(pool.most_queued as u64)),
        ("listen queue len", Field::Number(pool.queue_limit as u64)),
        ("idle processes", Field::Number(idle)),
        ("active processes", Field::Number(active)),
        ("total processes", Field::Number(idle + active)),
        ("max active processes", Field::Number(pool.most_busy as u64)),
        ("max children reached", Field::Number(pool.limit_reached)),
        ("slow requests", Field::Number(slow_requests(pool))),
    ]
}

/// Number of requests in the slow log; without a slow log, of requests that exceeded their deadline.
fn slow_requests(pool: &PoolStatus) -> u64 {
    pool.slow_requests.unwrap_or_else(|| pool.faults.get("deadline").copied().unwrap_or(0))
}

fn worker_fields(worker: &WorkerStatus, now: u64) -> Fields {
    let nothing = RequestReport::default();
    let last = worker.last.as_ref().unwrap_or(&nothing);
    let word = |text: &str| Field::Text(if text.is_empty() { "-" } else { text }.to_owned());
    let cpu = match last.cpu_us {
        Some(cpu) if last.php_us > 0 => cpu as f64 * 100.0 / last.php_us as f64,
        _ => 0.0,
    };
    vec![
        ("pid", Field::Number(u64::from(worker.pid))),
        ("state", word(if worker.busy { "Running" } else { "Idle" })),
        ("start time", Field::Time(now.saturating_sub(worker.age_s))),
        ("start since", Field::Number(worker.age_s)),
        ("requests", Field::Number(worker.requests + u64::from(worker.busy))),
        ("request duration", Field::Number(last.php_us)),
        ("request method", word(&last.method)),
        ("request uri", word(&last.uri)),
        ("content length", Field::Number(last.content_length)),
        ("user", word(last.user.as_deref().unwrap_or_default())),
        ("script", word(&last.script)),
        ("last request cpu", Field::Percent(cpu)),
        ("last request memory", Field::Number(last.memory)),
    ]
}

impl Field {
    /// Text for people, with times as dates.
    fn shown(&self) -> String {
        match self {
            Self::Time(seconds) => log_time(SystemTime::UNIX_EPOCH + Duration::from_secs(*seconds)),
            other => other.raw(),
        }
    }

    fn raw(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) | Self::Time(number) => number.to_string(),
            Self::Percent(percent) => format!("{percent:.2}"),
        }
    }

    fn json(&self) -> String {
        match self {
            // PHP's `json_encode` escapes slashes.
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string().replace('/', "\\/"),
            other => other.raw(),
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn text(pool: &Fields, processes: Option<&[Fields]>) -> String {
    let mut out = String::new();
    let line = |out: &mut String, name: &str, field: &Field| {
        let _ = writeln!(out, "{:<21} {}", format!("{name}:"), field.shown());
    };
    for (name, field) in pool {
        line(&mut out, name, field);
    }
    for process in processes.into_iter().flatten() {
        out.push_str("\n************************\n");
        for (name, field) in process {
            line(&mut out, if *name == "request uri" { "request URI" } else { name }, field);
        }
    }
    out
}

fn json(pool: &Fields, processes: Option<&[Fields]>) -> String {
    let object = |fields: &Fields| {
        fields.iter().map(|(name, field)| format!("\"{name}\":{}", field.json())).collect::<Vec<_>>().join(",")
    };
    let processes = processes.map(|processes| {
        let all: Vec<String> = processes.iter().map(|process| format!("{{{}}}", object(process))).collect();
        format!(", \"processes\":[{}]", all.join(","))
    });
    format!("{{{}{}}}", object(pool), processes.unwrap_or_default())
}

fn xml(pool: &Fields, processes: Option<&[Fields]>) -> String {
    let element = |(name, field): &(&str, Field)| {
        let name = name.replace(' ', "-");
        format!("<{name}>{}</{name}>", escaped(&field.raw()))
    };
    let mut out = String::from("<?xml version=\"1.0\" ?>\n<status>\n");
    for field in pool {
        let _ = writeln!(out, "{}", element(field));
    }
    if let Some(processes) = processes {
        out.push_str("<processes>\n");
        for process in processes {
            let _ = writeln!(out, "<process>{}</process>", process.iter().map(element).collect::<String>());
        }
        out.push_str("</processes>\n");
    }
    out + "</status>"
}

fn html(pool: &Fields, processes: Option<&[Fields]>) -> String {
    let mut out = String::from(
        "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \
         \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\">\n\
         <html xmlns=\"http://www.w3.org/1999/xhtml\" xml:lang=\"en\" lang=\"en\">\n\
         <head><title>PHP-FPM Status Page</title></head>\n<body>\n<table>\n",
    );
    for (name, field) in pool {
        let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", escaped(&field.shown()));
    }
    out.push_str("</table>\n");
    if let Some(processes) = processes {
        // The header row is there even without processes.
        let names = worker_fields(&NO_WORKER, 0);
        let names: String = names.iter().map(|(name, _)| format!("<th>{name}</th>")).collect();
        let _ = writeln!(out, "<table border=\"1\">\n<tr>{names}</tr>");
        for process in processes {
            let cells: String =
                process.iter().map(|(_, field)| format!("<td>{}</td>", escaped(&field.shown()))).collect();
            let _ = writeln!(out, "<tr>{cells}</tr>");
        }
        out.push_str("</table>");
    }
    out + "</body></html>"
}

/// Source of the field names.
const NO_WORKER: WorkerStatus = WorkerStatus::NONE;

fn openmetrics(pool: &PoolStatus, now: u64) -> String {
    let (idle, active) = processes(pool);
    let since = "since FPM has started.";
    let up = format!("Could pool {} using a {} PM on PHP-FPM be reached?", pool.name, pool.manager);
    let metrics = [
        ("up", "gauge", up, 1),
        (
            "start_since",
            "counter",
            "The number of seconds since FPM has started.".to_owned(),
            now.saturating_sub(pool.started),
        ),
        ("accepted_connections", "counter", "The number of requests accepted by the pool.".to_owned(), pool.accepted),
        (
            "listen_queue",
            "gauge",
            "The number of requests in the queue of pending connections.".to_owned(),
            pool.queued as u64,
        ),
        (
            "max_listen_queue",
            "counter",
            format!("The maximum number of requests in the queue of pending connections {since}"),
            pool.most_queued as u64,
        ),
        (
            "listen_queue_length",
            "gauge",
            "The size of the socket queue of pending connections.".to_owned(),
            pool.queue_limit as u64,
        ),
        ("idle_processes", "gauge", "The number of idle processes.".to_owned(), idle),
        ("active_processes", "gauge", "The number of active processes.".to_owned(), active),
        ("total_processes", "gauge", "The number of idle + active processes.".to_owned(), idle + active),
        (
            "max_active_processes",
            "counter",
            format!("The maximum number of active processes {since}"),
            pool.most_busy as u64,
        ),
        (
            "max_children_reached",
            "counter",
            "The number of times, the process limit has been reached, when pm tries to start more children (works only for pm \
             'dynamic' and 'ondemand')."
                .to_owned(),
            pool.limit_reached,
        ),
        (
            "slow_requests",
            "counter",
            "The number of requests that exceeded your 'request_slowlog_timeout' value.".to_owned(),
            slow_requests(pool),
        ),
    ];
    let mut out = String::new();
    for (name, kind, help, value) in metrics {
        let _ = writeln!(out, "# HELP phpfpm_{name} {help}\n# TYPE phpfpm_{name} {kind}\nphpfpm_{name} {value}");
    }
    out + "# EOF\n"
}
