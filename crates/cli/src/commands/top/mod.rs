//! `howdah top`: a live view of a running server through its admin endpoint. `sample` computes figures from two
//! responses, `text` formats them as lines, `screen` as a full screen, and `terminal` shows that. This file has the
//! loop and the keys.

mod columns;
mod sample;
mod screen;
mod terminal;
mod text;

use crate::commands::profile;
use crate::control::client::{ask, server_status};
use crate::control::outcome::Outcome;
use crate::output;
use crate::output::plain;
use anyhow::{Context, Result};
use howdah_config::AdminAddress;
use howdah_config::cli::ProfileFlags;
use sample::{Sample, between};
use screen::Screen;
use serde_json::Value;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use terminal::{Key, Terminal};

/// Duration of a profile by the key `p`.
const PROFILE_SECONDS: u64 = 10;
/// Interval between two requests for the server's status.
const INTERVAL: Duration = Duration::from_secs(1);

/// The server's last response, from which the difference to the next one is computed.
struct Watch {
    last: Value,
    at: Instant,
}

impl Watch {
    fn begin(admin: &AdminAddress) -> Result<Self> {
        Ok(Self { last: server_status(admin)?, at: Instant::now() })
    }

    fn next(&mut self, admin: &AdminAddress) -> Result<Sample> {
        let (now, at) = (server_status(admin)?, Instant::now());
        let sample = between(&self.last, &now, at.saturating_duration_since(self.at).as_secs_f64());
        (self.last, self.at) = (now, at);
        Ok(sample)
    }
}

/// Runs until interrupted; runs once if requested or without a terminal.
pub(crate) fn run(admin: &AdminAddress, once: bool) -> Result<ExitCode> {
    let mut watch = Watch::begin(admin)?;
    if once || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        std::thread::sleep(INTERVAL);
        output::print(text::render(&watch.next(admin)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut terminal = Terminal::take().context("cannot use this terminal; see `howdah top --once`")?;
    live(admin, &mut watch, &mut terminal).map(|()| ExitCode::SUCCESS)
}

/// An order that waits for confirmation with `y`.
struct Order {
    path: String,
    what: String,
}

fn live(admin: &AdminAddress, watch: &mut Watch, terminal: &mut Terminal) -> Result<()> {
    let (told, outcomes) = mpsc::channel();
    let mut screen = Screen::default();
    screen.take(between(&Value::Null, &watch.last, f64::MAX));
    let mut asked: Option<Order> = None;
    let mut is_lost = false;
    loop {
        let (width, height) = Terminal::size();
        Terminal::show(&screen.draw(width, height), width)?;
        if let Some(key) = terminal.key(INTERVAL.saturating_sub(watch.at.elapsed()))? {
            if let Some(order) = asked.take() {
                screen.message = None;
                if key == Key::Char('y') {
                    screen.message = Some(format!("{} …", order.what));
                    send(admin.clone(), order, told.clone());
                }
                continue;
            }
            match key {
                Key::Char('q') | Key::Escape | Key::Interrupt => return Ok(()),
                Key::Up | Key::Char('k') => screen.move_by(-1),
                Key::Down | Key::Char('j') => screen.move_by(1),
                Key::Char('p') => {
                    if let Some(pool) = screen.worker().map(|worker| worker.pool.clone()) {
                        screen.message = Some(format!("profiling pool {pool} for {PROFILE_SECONDS} s …"));
                        profile_pool(admin.clone(), pool, told.clone());
                    }
                }
                Key::Char(key @ ('d' | 'r')) => {
                    asked = order(&screen, key);
                    screen.message = asked.as_ref().map(|order| format!("{}? y: yes, any other key: no", order.what));
                }
                _ => {}
            }
        }
        if let Ok(said) = outcomes.try_recv() {
            screen.message = Some(said);
        }
        if watch.at.elapsed() >= INTERVAL {
            match watch.next(admin) {
                Ok(sample) => {
                    screen.take(sample);
                    // The message about an unreachable server is obsolete.
                    if std::mem::take(&mut is_lost) {
                        screen.message = None;
                    }
                }
                Err(error) => {
                    (watch.at, is_lost) = (Instant::now(), true);
                    screen.message = Some(format!("{error:#}"));
                }
            }
        }
    }
}

fn order(screen: &Screen, key: char) -> Option<Order> {
    let worker = screen.worker()?;
    Some(match key {
        'd' => Order {
            path: format!("/pools/{}/workers/{}/drain", worker.pool, worker.worker),
            what: format!("drain worker {} of pool {}", worker.worker, worker.pool),
        },
        _ => Order {
            path: format!("/pools/{}/reload", worker.pool),
            what: format!("restart all workers of pool {}", worker.pool),
        },
    })
}

/// Profiles a pool into a file, on a thread so that the screen keeps updating.
fn profile_pool(admin: AdminAddress, pool: String, told: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        let output = format!("howdah-{pool}.svg").into();
        let flags = ProfileFlags { pool, seconds: PROFILE_SECONDS, rate: 99, format: None, output: Some(output) };
        let said = profile::make(&admin, &flags).unwrap_or_else(|error| format!("{error:#}"));
        let _ = told.send(plain(&said));
    });
}

/// Sends an order, on a thread so that the screen keeps updating: a restart takes as long as PHP's boot.
fn send(admin: AdminAddress, order: Order, told: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        let said = match ask(&admin, "POST", &order.path) {
            Ok((_, body)) => serde_json::from_str::<Outcome>(&body).map_or(body, |outcome| outcome.message),
            Err(error) => format!("{error:#}"),
        };
        let _ = told.send(format!("{}: {}", order.what, plain(&said)));
    });
}
