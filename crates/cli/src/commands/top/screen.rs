//! The screen of `howdah top`, as one line of text per terminal line.

use super::columns::{Column, Columns, cut, wide};
use super::sample::{Latency, Sample, WorkerRow};
use super::terminal::{Line, style};
use super::text::{lasted, memory, ms, percent, route_name};
use crate::commands::status::text::duration;

/// Help for the keys: long for wide terminals, short for narrow ones.
const KEYS: [&str; 2] = [
    " q quit   ↑ ↓ worker   d drain it   r restart its pool   p profile its pool",
    " q quit  d drain  r restart  p profile",
];

/// State kept between two updates.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    pub(crate) sample: Sample,
    /// Requests per second, the newest last.
    pub(crate) history: Vec<u64>,
    /// Index of the selected worker in its table.
    pub(crate) selected: usize,
    /// Number of workers scrolled past at the top.
    scrolled: usize,
    /// The server's last message, or a question.
    pub(crate) message: Option<String>,
}

/// Number of samples in the chart.
const HISTORY: usize = 240;

/// Minimum height of a section: its title, its header and one row.
const MIN_ROWS: u16 = 3;

/// Maximum number of demoted routes shown; `howdah routes` lists all.
const MAX_DEMOTED: usize = 4;

/// Maximum number of sites with live connections shown; `howdah status` lists all.
const MAX_HUBS: usize = 4;

impl Screen {
    pub(crate) fn take(&mut self, sample: Sample) {
        self.history.push(sample.total.per_second.round() as u64);
        let excess = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..excess);
        self.sample = sample;
        let last = self.sample.workers.len().saturating_sub(1);
        self.selected = self.selected.min(last);
    }

    pub(crate) fn move_by(&mut self, by: isize) {
        let last = self.sample.workers.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    pub(crate) fn worker(&self) -> Option<&WorkerRow> {
        self.sample.workers.get(self.selected)
    }

    pub(crate) fn draw(&mut self, width: u16, height: u16) -> Vec<Line> {
        let [curve, pools, hubs, workers, demoted, routes] = heights(&self.sample, height);
        let visible = usize::from(workers.saturating_sub(2)).max(1);
        self.scrolled = self.scrolled.clamp((self.selected + 1).saturating_sub(visible), self.selected);
        let sample = &self.sample;
        let shown = &self.history[self.history.len().saturating_sub(width.into())..];
        let mut lines = vec![Line::new(title(sample, width), style::BOLD)];
        lines.extend(part("requests/s", bars(shown, curve.saturating_sub(1)), width, curve));
        lines.extend(part("pools", pool_table(sample, width), width, pools));
        lines.extend(part("live connections", hub_table(sample, width), width, hubs));
        lines.extend(part("workers", self.worker_table(width), width, workers));
        lines.extend(part("demoted: in classic mode", demoted_table(sample, width), width, demoted));
        lines.extend(part("slowest routes", route_table(sample, width), width, routes));
        lines.resize_with(height.saturating_sub(1).into(), Line::empty);
        lines.push(match self.message.as_deref() {
            Some(text) => Line::new(cut(&format!(" {text}"), width), style::REVERSED),
            None => {
                let keys = KEYS.iter().find(|keys| wide(keys) <= width).unwrap_or(&KEYS[1]);
                Line::new((*keys).to_owned(), style::DIM)
            }
        });
        lines
    }

    fn worker_table(&self, width: u16) -> Vec<Line> {
        let columns = Columns::fit(&WORKERS, width, WORKERS.len() - 1, width);
        let rows = self.sample.workers.iter().enumerate().skip(self.scrolled).map(|(at, worker)| {
            let row = columns.row([
                worker.pool.clone(),
                worker.worker.to_string(),
                worker.pid.to_string(),
                worker.phase.clone(),
                worker.age_s.to_string(),
                worker.requests.to_string(),
                memory(worker.memory),
                percent(worker.cpu),
                worker.running_ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string()),
                worker.request.clone(),
            ]);
            let row = if worker.phase == "busy" { row.styled(style::GREEN) } else { row };
            if at == self.selected { row.selected() } else { row }
        });
        std::iter::once(columns.head()).chain(rows).collect()
    }
}

/// Figures of the server, the most important ones if there is not enough room.
fn title(sample: &Sample, width: u16) -> String {
    let of = sample.total;
    let times = format!("p50 {}  p95 {}  p99 {} ms", ms(of.p50), ms(of.p95), ms(of.p99));
    let (version, up) = (&sample.version, duration(sample.uptime_s));
    let all = [
        format!(
            " howdah {version}  up {up}  {} connections  {:.0} requests/s  {times}",
            sample.connections, of.per_second
        ),
        format!(" up {up}  {:.0} requests/s  {times}", of.per_second),
        format!(" {:.0}/s  {times}", of.per_second),
    ];
    let fits = all.iter().position(|text| wide(text) <= width).unwrap_or(all.len() - 1);
    all[fits].clone()
}

/// Height of each section. The workers get at least two rows, as they matter most. If there is not enough room, the
/// chart disappears first, then the routes.
fn heights(sample: &Sample, height: u16) -> [u16; 6] {
    let mut left = height.saturating_sub(2 + MIN_ROWS + 1);
    let mut take = |rows: usize, most: usize| {
        let wanted = rows.min(most) as u16 + 2;
        let given = if rows > 0 && left >= MIN_ROWS { wanted.min(left) } else { 0 };
        left -= given;
        given
    };
    let pools = take(sample.pools.len(), 8);
    let demoted = take(sample.demoted.len(), MAX_DEMOTED);
    let routes = take(sample.routes.len().max(1), 6);
    let hubs = take(sample.hubs.len(), MAX_HUBS);
    let curve = take(2, 2);
    let workers = height.saturating_sub(2 + pools + hubs + demoted + routes + curve);
    [curve, pools, hubs, workers, demoted, routes]
}

/// A section of this height: a title line and as many lines as fit.
fn part(title: &str, lines: Vec<Line>, width: u16, height: u16) -> Vec<Line> {
    let rule = "─".repeat(usize::from(width).saturating_sub(title.len() + 2));
    let mut part = vec![Line::new(format!(" {title} {rule}"), style::DIM)];
    part.extend(lines);
    part.resize_with(height.into(), Line::empty);
    part
}

const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar for each figure, this many lines high.
fn bars(figures: &[u64], lines: u16) -> Vec<Line> {
    let (lines, most) = (u64::from(lines), figures.iter().copied().max().unwrap_or(0).max(1));
    let line = |below: u64| {
        let eighths = |figure: &u64| (figure.saturating_mul(8 * lines) / most).saturating_sub(8 * below).min(8);
        figures.iter().map(|figure| BARS[eighths(figure) as usize]).collect()
    };
    (0..lines).rev().map(|below| Line::new(line(below), style::CYAN)).collect()
}

fn latency_cells(of: Latency) -> [String; 4] {
    [format!("{:.1}", of.per_second), ms(of.p50), ms(of.p95), ms(of.p99)]
}

const POOLS: [Column; 10] = [
    Column::new("POOL", 15, 0),
    Column::new("MODE", 9, 52),
    Column::new("BUSY", 7, 0),
    Column::new("QUEUE", 6, 0),
    Column::new("WAIT ms", 8, 80),
    Column::new("PHP/s", 8, 0),
    Column::new("p50 ms", 8, 90),
    Column::new("p95 ms", 8, 60),
    Column::new("p99 ms", 8, 100),
    Column::new("FAILED", 7, 70),
];

fn pool_table(sample: &Sample, width: u16) -> Vec<Line> {
    let longest = sample.pools.iter().map(|pool| wide(&pool.name)).max();
    let columns = Columns::fit(&POOLS, width, 0, longest.unwrap_or(0));
    let rows = sample.pools.iter().map(|pool| {
        let busy = format!("{}/{}", pool.busy, pool.workers);
        let [rate, p50, p95, p99] = latency_cells(pool.php);
        let (queued, waits, faults) = (pool.queued, pool.oldest_wait_ms, pool.faults);
        let row = columns.row([
            pool.name.clone(),
            pool.mode.clone(),
            busy,
            queued.to_string(),
            waits.to_string(),
            rate,
            p50,
            p95,
            p99,
            faults.to_string(),
        ]);
        match (pool.down || faults > 0, queued > 0) {
            (true, _) => row.styled(style::RED),
            (false, true) => row.styled(style::YELLOW),
            _ => row,
        }
    });
    std::iter::once(columns.head()).chain(rows).collect()
}

fn hub_table(sample: &Sample, width: u16) -> Vec<Line> {
    let all = [
        Column::new("SITE", 15, 0),
        Column::new("WEBSOCKETS", 11, 0),
        Column::new("MERCURE", 9, 0),
        Column::new("CHANNELS", 9, 46),
    ];
    let longest = sample.hubs.iter().map(|hub| wide(&hub.site)).max();
    let columns = Columns::fit(&all, width, 0, longest.unwrap_or(0));
    let rows = sample.hubs.iter().map(|hub| {
        let counts = [hub.websockets, hub.subscribers, hub.channels].map(|count| count.to_string());
        let [websockets, subscribers, channels] = counts;
        columns.row([hub.site.clone(), websockets, subscribers, channels])
    });
    std::iter::once(columns.head()).chain(rows).collect()
}

const WORKERS: [Column; 10] = [
    Column::new("POOL", 14, 60),
    Column::new("NO", 3, 0),
    Column::new("PID", 8, 110),
    Column::new("STATE", 9, 0),
    Column::new("AGE s", 7, 92),
    Column::new("REQUESTS", 9, 102),
    Column::new("MEMORY", 9, 70),
    Column::new("CPU%", 5, 80),
    Column::new("RUNS ms", 8, 0),
    Column::new("REQUEST", 10, 0),
];

const ROUTES: [Column; 6] = [
    Column::new("ROUTE", 15, 0),
    Column::new("PER s", 9, 0),
    Column::new("p50 ms", 8, 60),
    Column::new("p95 ms", 8, 0),
    Column::new("p99 ms", 8, 70),
    Column::new("5xx", 6, 50),
];

fn route_table(sample: &Sample, width: u16) -> Vec<Line> {
    let names: Vec<_> = sample.routes.iter().map(|route| route_name(&route.site, &route.route)).collect();
    let longest = names.iter().map(|name| wide(name)).max();
    let columns = Columns::fit(&ROUTES, width, 0, longest.unwrap_or(0).max(40));
    let rows = sample.routes.iter().zip(names).map(|(route, name)| {
        let [rate, p50, p95, p99] = latency_cells(route.requests);
        let row = columns.row([name, rate, p50, p95, p99, route.errors.to_string()]);
        if route.errors > 0 { row.styled(style::RED) } else { row }
    });
    std::iter::once(columns.head()).chain(rows).collect()
}

fn demoted_table(sample: &Sample, width: u16) -> Vec<Line> {
    let all = [
        Column::new("POOL", 14, 70),
        Column::new("ROUTE", (width / 4).clamp(14, 40), 0),
        Column::new("FOR", 10, 55),
        Column::new("REASON", 10, 0),
    ];
    let columns = Columns::fit(&all, width, all.len() - 1, width);
    let rows = sample.demoted.iter().take(MAX_DEMOTED).map(|route| {
        let (name, reason) = (route.route.clone(), route.reason.clone());
        columns.row([route.pool.clone(), name, lasted(route.since), reason]).styled(style::YELLOW)
    });
    std::iter::once(columns.head()).chain(rows).collect()
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
