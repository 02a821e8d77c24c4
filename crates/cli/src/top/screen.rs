//! `howdah top` on a terminal. Colours are the terminal's own sixteen, so they suit light and dark ones.

use super::sample::{Latency, Sample, WorkerRow};
use super::text::{lasted, memory, ms, percent, route_name};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Cell, Row, Sparkline, Table, TableState};

const KEYS: &str = " q quit   ↑ ↓ worker   d drain it   r restart its pool   p profile its pool";

/// What stays between two pictures.
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
        let pools = self.sample.pools.len().min(8) as u16 + 2;
        let routes = self.sample.routes.len().clamp(1, 6) as u16 + 2;
        let demoted = match self.sample.demoted.len() {
            0 => 0,
            rows => rows.min(MOST_DEMOTED) as u16 + 2,
        };
        let parts = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(4),
            Constraint::Length(pools),
            Constraint::Min(4),
            Constraint::Length(demoted),
            Constraint::Length(routes),
            Constraint::Length(1),
        ]);
        let [head, curve, pools, workers, demoted, routes, keys] = frame.area().layout(&parts);
        let sample = &self.sample;
        let title = format!(
            " howdah {}  up {} s  {} connections  {:.0} requests/s  p50 {}  p95 {}  p99 {} ms",
            sample.version,
            sample.uptime_s,
            sample.connections,
            sample.total.per_second,
            ms(sample.total.p50),
            ms(sample.total.p95),
            ms(sample.total.p99),
        );
        frame.render_widget(Line::from(title).bold(), head);
        let width = usize::from(curve.width);
        let shown = &self.history[self.history.len().saturating_sub(width)..];
        frame.render_widget(Sparkline::default().data(shown).cyan().block(titled("requests/s")), curve);
        frame.render_widget(pool_table(sample), pools);
        frame.render_stateful_widget(worker_table(sample), workers, &mut self.selected);
        frame.render_widget(demoted_table(sample), demoted);
        frame.render_widget(route_table(sample), routes);
        let message = self.message.as_deref();
        let line = message.map_or_else(|| Line::from(KEYS).dim(), |text| Line::from(format!(" {text}")).reversed());
        frame.render_widget(line, keys);
    }
}

fn titled(title: &str) -> Block<'_> {
    Block::new().borders(Borders::TOP).title(format!(" {title} ")).dim()
}

fn head<'a>(names: impl IntoIterator<Item = &'a str>) -> Row<'a> {
    Row::new(names).style(Style::new().add_modifier(Modifier::BOLD))
}

fn latency_cells(of: Latency) -> [String; 4] {
    [format!("{:.1}", of.per_second), ms(of.p50), ms(of.p95), ms(of.p99)]
}

fn pool_table(sample: &Sample) -> Table<'_> {
    let rows = sample.pools.iter().map(|pool| {
        let busy = format!("{}/{}", pool.busy, pool.workers);
        let [rate, p50, p95, p99] = latency_cells(pool.php);
        let row = Row::new([
            pool.name.clone(),
            pool.mode.clone(),
            busy,
            pool.queued.to_string(),
            pool.oldest_wait_ms.to_string(),
            rate,
            p50,
            p95,
            p99,
            pool.faults.to_string(),
        ]);
        match (pool.down || pool.faults > 0, pool.queued > 0) {
            (true, _) => row.red(),
            (false, true) => row.yellow(),
            _ => row,
        }
    });
    let widths = [16, 9, 9, 7, 8, 9, 8, 8, 8, 7];
    let names = ["POOL", "MODE", "BUSY", "QUEUE", "WAIT ms", "PHP/s", "p50 ms", "p95 ms", "p99 ms", "FAILED"];
    Table::new(rows, widths).header(head(names)).block(titled("pools"))
}

fn worker_table(sample: &Sample) -> Table<'_> {
    let rows = sample.workers.iter().map(|worker| {
        let cells = [
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
        ];
        let row = Row::new(cells.map(Cell::from));
        if worker.phase == "busy" { row.green() } else { row }
    });
    let widths = [14, 3, 8, 9, 7, 9, 9, 5, 8].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let names = ["POOL", "NO", "PID", "STATE", "AGE s", "REQUESTS", "MEMORY", "CPU%", "RUNS ms", "REQUEST"];
    Table::new(rows, widths)
        .header(head(names))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(titled("workers"))
}

fn route_table(sample: &Sample) -> Table<'_> {
    let rows = sample.routes.iter().map(|route| {
        let [rate, p50, p95, p99] = latency_cells(route.requests);
        let row = Row::new([route_name(&route.site, &route.route), rate, p50, p95, p99, route.errors.to_string()]);
        if route.errors > 0 { row.red() } else { row }
    });
    let widths = [40, 9, 8, 8, 8, 7];
    let names = ["ROUTE", "PER s", "p50 ms", "p95 ms", "p99 ms", "5xx"];
    Table::new(rows, widths).header(head(names)).block(titled("slowest routes"))
}

fn demoted_table(sample: &Sample) -> Table<'_> {
    let rows = sample.demoted.iter().take(MOST_DEMOTED).map(|route| {
        Row::new([route.pool.clone(), route.route.clone(), lasted(route.since), route.reason.clone()]).yellow()
    });
    let widths = [14, 32, 12].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let names = ["POOL", "ROUTE", "FOR", "REASON"];
    Table::new(rows, widths).header(head(names)).block(titled("demoted: in classic mode"))
}
