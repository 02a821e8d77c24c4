//! Reports of workers' connection pools (`Howdah\Pool`): read from their lanes on demand and summed by name. Counters
//! are kept when a worker ends.

use crate::lane::Lane;
use howdah_observe::ConnectionPool;
use howdah_transport::PoolReport;
use howdah_transport::wire::PoolNumber;

fn from_report(report: PoolReport) -> ConnectionPool {
    let number = |which: PoolNumber| report.numbers[which as usize];
    ConnectionPool {
        limit: number(PoolNumber::Limit),
        open: number(PoolNumber::Open),
        idle: number(PoolNumber::Idle),
        in_use: number(PoolNumber::InUse),
        waiting: number(PoolNumber::Waiting),
        wait_max_us: number(PoolNumber::WaitMax) / 1000,
        acquired: number(PoolNumber::Acquired),
        waits: number(PoolNumber::Waits),
        wait_us: number(PoolNumber::Wait) / 1000,
        timeouts: number(PoolNumber::Timeouts),
        opened: number(PoolNumber::Opened),
        closed: number(PoolNumber::Closed),
        open_failures: number(PoolNumber::OpenFailures),
        check_failures: number(PoolNumber::CheckFailures),
        forgotten: number(PoolNumber::Forgotten),
        open_transactions: number(PoolNumber::OpenTransactions),
        name: report.name,
    }
}

/// The connection pools of one worker, by name.
pub(crate) fn of_worker(lane: &Lane) -> Vec<ConnectionPool> {
    let mut pools = Vec::new();
    lane.connection_pools().into_iter().for_each(|report| from_report(report).add_to(&mut pools));
    pools
}

/// The connection pools of all workers, with the totals of ended workers.
pub(crate) fn of_all<'a>(lanes: impl Iterator<Item = &'a Lane>, ended: &[ConnectionPool]) -> Vec<ConnectionPool> {
    let mut pools = ended.to_vec();
    for lane in lanes {
        of_worker(lane).into_iter().for_each(|pool| pool.add_to(&mut pools));
    }
    pools
}

/// Adds the counters of a worker that has ended to `ended`.
pub(crate) fn keep(lane: &Lane, ended: &mut Vec<ConnectionPool>) {
    of_worker(lane).into_iter().for_each(|pool| pool.add_to_ended(ended));
}
