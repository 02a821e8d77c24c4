//! The part of a page that shows how the way of counting changes a latency.

use super::document::Document;
use crate::report::blocks::{Block, Cell, Table};
use crate::report::{number, time};

/// Adds it, if it was measured.
pub(super) fn add(blocks: &mut Vec<Block>, document: &Document) {
    let Some(counting) = &document.counting else { return };
    blocks.push(Block::Heading("Ways of counting latency".into()));
    blocks.push(Block::Text(format!(
        "The same script on {}, which waits {} ms and computes nothing ({}). A closed loop (ab, wrk, vegeta without a rate) sends the next \
         request after the last response: a late server gets fewer requests, and the wait of the visitors who would have sent the others \
         is left out (coordinated omission). In an open loop requests are due at a rate, and latency counts from that time.",
        counting.system, counting.wait_ms, counting.load
    )));
    let rows = counting.ways.iter().map(|way| {
        let mut cells = vec![Cell::words(way.title.clone()).below(way.how.clone())];
        match &way.figures {
            Some(figures) => {
                cells.push(Cell::new(format!("{} /s", number(figures.rate.median))));
                let times = [figures.p50_us, figures.p95_us, figures.p99_us];
                cells.extend(times.map(|us| us.map_or(Cell::absent("–"), |us| Cell::new(time(us)))));
            }
            None => {
                cells.push(Cell::absent(way.reason.clone().unwrap_or_else(|| "not measured".into())));
                cells.extend((0..3).map(|_| Cell::absent("–")));
            }
        }
        cells
    });
    blocks.push(Block::Table(Table {
        head: ["generator", "responses", "p50", "p95", "p99"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }));
    blocks.push(Block::Text(
        "Closed loops agree with each other: connections divided by throughput. Below what the server can serve the \
         open loop shows less than they do, because no request waits in a queue that the load itself builds; above it \
         the queue grows for as long as the run lasts, which no closed loop can show. So latencies of articles are \
         comparable only if they were counted in the same way at the same rate."
            .into(),
    ));
}
