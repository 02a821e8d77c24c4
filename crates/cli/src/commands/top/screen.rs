//! `howdah top` on a terminal. Colours are the terminal's own sixteen, so they suit light and dark ones.

use super::columns::{Column, Columns, cut, wide};
use super::sample::{Latency, Sample, WorkerRow};
use super::text::{lasted, memory, ms, percent, route_name};
use crate::commands::status::text::duration;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Sparkline, Table, TableState};

/// The keys, for terminals of every width.
const KEYS: [&str; 2] = [
    " q quit   ↑ ↓ worker   d drain it   r restart its pool   p profile its pool",
    " q quit  d drain  r restart  p profile",
];

/// State that is kept between two pictures.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    pub(crate) sample: Sample,
    /// Requests per second, the newest last.
    pub(crate) history: Vec<u64>,
    pub(crate) selected: TableState,
    /// The last word of the server, or a question.
    pub(crate) message: Option<String>,
}

/// Pictures that the curve goes back.
const HISTORY: usize = 240;

/// A part with less says nothing: its title, its head and a line.
const LEAST: u16 = 3;

/// Demoted routes that have room; `howdah routes` lists all.
const MOST_DEMOTED: usize = 4;

impl Screen {
    pub(crate) fn take(&mut self, sample: Sample) {
        self.history.push(sample.total.per_second.round() as u64);
        let excess = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..excess);
        self.sample = sample;
        let last = self.sample.workers.len().saturating_sub(1);
        self.selected.select(Some(self.selected.selected().unwrap_or(0).min(last)));
    }

    pub(crate) fn move_by(&mut self, by: isize) {
        let last = self.sample.workers.len().saturating_sub(1);
        let at = self.selected.selected().unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected.select(Some(at));
    }

    pub(crate) fn worker(&self) -> Option<&WorkerRow> {
        self.sample.workers.get(self.selected.selected()?)
    }

    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let parts = Layout::vertical(heights(&self.sample, area.height).map(Constraint::Length));
        let [top, curve, pools, workers, demoted, routes, keys] = area.layout(&parts);
        let sample = &self.sample;
        frame.render_widget(Line::from(title(sample, area.width)).bold(), top);
        let width = usize::from(curve.width);
        let shown = &self.history[self.history.len().saturating_sub(width)..];
        frame.render_widget(Sparkline::default().data(shown).cyan().block(titled("requests/s")), curve);
        frame.render_widget(pool_table(sample, area.width), pools);
        frame.render_stateful_widget(worker_table(sample, area.width), workers, &mut self.selected);
        frame.render_widget(demoted_table(sample, area.width), demoted);
        frame.render_widget(route_table(sample, area.width), routes);
        let line = match self.message.as_deref() {
            Some(text) => Line::from(cut(&format!(" {text}"), area.width)).reversed(),
            None => Line::from(*KEYS.iter().find(|keys| wide(keys) <= area.width).unwrap_or(&KEYS[1])).dim(),
        };
        frame.render_widget(line, keys);
    }
}

/// The numbers of the server, the most telling ones where there is no room for all.
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

/// The lines of each part. Workers, for whose sake one looks, have two at least; where there is no room for all parts, those
/// that say least leave: first the curve, then the routes.
fn heights(sample: &Sample, height: u16) -> [u16; 7] {
    let mut left = height.saturating_sub(2 + LEAST + 1);
    let mut take = |rows: usize, most: usize| {
        let wanted = rows.min(most) as u16 + 2;
        let given = if rows > 0 && left >= LEAST { wanted.min(left) } else { 0 };
        left -= given;
        given
    };
    let pools = take(sample.pools.len(), 8);
    let demoted = take(sample.demoted.len(), MOST_DEMOTED);
    let routes = take(sample.routes.len().max(1), 6);
    let curve = take(2, 2);
    let workers = height.saturating_sub(2 + pools + demoted + routes + curve);
    [1, curve, pools, workers, demoted, routes, 1]
}

fn titled(title: &str) -> Block<'_> {
    Block::new().borders(Borders::TOP).title(format!(" {title} ")).dim()
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

fn pool_table(sample: &Sample, width: u16) -> Table<'_> {
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
            (true, _) => row.red(),
            (false, true) => row.yellow(),
            _ => row,
        }
    });
    columns.table(rows, titled("pools"))
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

fn worker_table(sample: &Sample, width: u16) -> Table<'_> {
    let columns = Columns::fit(&WORKERS, width, WORKERS.len() - 1, width);
    let rows = sample.workers.iter().map(|worker| {
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
        if worker.phase == "busy" { row.green() } else { row }
    });
    columns.table(rows, titled("workers")).row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
}

const ROUTES: [Column; 6] = [
    Column::new("ROUTE", 15, 0),
    Column::new("PER s", 9, 0),
    Column::new("p50 ms", 8, 60),
    Column::new("p95 ms", 8, 0),
    Column::new("p99 ms", 8, 70),
    Column::new("5xx", 6, 50),
];

fn route_table(sample: &Sample, width: u16) -> Table<'_> {
    let names: Vec<_> = sample.routes.iter().map(|route| route_name(&route.site, &route.route)).collect();
    let longest = names.iter().map(|name| wide(name)).max();
    let columns = Columns::fit(&ROUTES, width, 0, longest.unwrap_or(0).max(40));
    let rows = sample.routes.iter().zip(names).map(|(route, name)| {
        let [rate, p50, p95, p99] = latency_cells(route.requests);
        let row = columns.row([name, rate, p50, p95, p99, route.errors.to_string()]);
        if route.errors > 0 { row.red() } else { row }
    });
    columns.table(rows.collect::<Vec<_>>().into_iter(), titled("slowest routes"))
}

fn demoted_table(sample: &Sample, width: u16) -> Table<'_> {
    let all = [
        Column::new("POOL", 14, 70),
        Column::new("ROUTE", (width / 4).clamp(14, 40), 0),
        Column::new("FOR", 10, 55),
        Column::new("REASON", 10, 0),
    ];
    let columns = Columns::fit(&all, width, all.len() - 1, width);
    let rows = sample.demoted.iter().take(MOST_DEMOTED).map(|route| {
        let (name, reason) = (route.route.clone(), route.reason.clone());
        columns.row([route.pool.clone(), name, lasted(route.since), reason]).yellow()
    });
    columns.table(rows, titled("demoted: in classic mode"))
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
