//! Statistics of connection pools (`Howdah\Pool` in PHP) for `howdah status` and the metrics: of one worker, or summed
//! by name.

use serde::Serialize;

/// Maximum number of pool names in one list. Scripts choose the names and could create new ones without end.
const MAX_NAMES: usize = 64;

/// Maximum number of names from ended workers, which leaves room for names of running workers.
const MAX_ENDED: usize = MAX_NAMES / 2;

/// Name that sums up the pools above the limit.
const OTHER_POOLS: &str = "(others)";

/// Statistics of the connection pools with one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionPool {
    /// The pools' name.
    pub name: String,
    /// Maximum number of open connections.
    pub limit: u64,
    /// Connections that are open, or being opened.
    pub open: u64,
    /// Open connections that are idle.
    pub idle: u64,
    /// Open connections that are in use.
    pub in_use: u64,
    /// Coroutines that wait for a connection.
    pub waiting: u64,
    /// The longest wait in a running worker, in microseconds.
    pub wait_max_us: u64,
    /// Connections requested.
    pub acquired: u64,
    /// Requests that had to wait for a connection.
    pub waits: u64,
    /// Total waiting time, in microseconds.
    pub wait_us: u64,
    /// Waits that timed out.
    pub timeouts: u64,
    pub opened: u64,
    pub closed: u64,
    /// Connections that could not be opened.
    pub open_failures: u64,
    /// Connections that failed a check or a reset.
    pub check_failures: u64,
    /// Connections that were returned only when their coroutine ended.
    pub forgotten: u64,
    /// Connections that were returned with an open transaction.
    pub open_transactions: u64,
}

impl ConnectionPool {
    /// Adds the statistics of another pool.
    fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.limit, other.limit),
            (&mut self.open, other.open),
            (&mut self.idle, other.idle),
            (&mut self.in_use, other.in_use),
            (&mut self.waiting, other.waiting),
            (&mut self.acquired, other.acquired),
            (&mut self.waits, other.waits),
            (&mut self.wait_us, other.wait_us),
            (&mut self.timeouts, other.timeouts),
            (&mut self.opened, other.opened),
            (&mut self.closed, other.closed),
            (&mut self.open_failures, other.open_failures),
            (&mut self.check_failures, other.check_failures),
            (&mut self.forgotten, other.forgotten),
            (&mut self.open_transactions, other.open_transactions),
        ];
        for (sum, number) in sums {
            *sum = sum.saturating_add(number);
        }
        self.wait_max_us = self.wait_max_us.max(other.wait_max_us);
    }

    /// The counts to keep after the worker has ended. Its open connections ended with it, and count as closed.
    fn ended(self) -> Self {
        let closed = self.closed.saturating_add(self.open);
        Self { limit: 0, open: 0, idle: 0, in_use: 0, waiting: 0, wait_max_us: 0, closed, ..self }
    }

    /// Adds these statistics to the entry of the same name in a list, which stays sorted by name.
    pub fn add_to(self, list: &mut Vec<Self>) {
        self.add_within(list, MAX_NAMES);
    }

    /// Adds the counts of an ended worker to the list of ended workers.
    pub fn add_to_ended(self, list: &mut Vec<Self>) {
        self.ended().add_within(list, MAX_ENDED);
    }

    fn add_within(mut self, list: &mut Vec<Self>, most: usize) {
        let mut found = list.binary_search_by(|other| other.name.cmp(&self.name));
        if found.is_err() && list.len() >= most && self.name != OTHER_POOLS {
            OTHER_POOLS.clone_into(&mut self.name);
            found = list.binary_search_by(|other| other.name.as_str().cmp(OTHER_POOLS));
        }
        match found {
            Ok(at) => list[at].add(&self),
            Err(at) => list.insert(at, self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, open: u64) -> ConnectionPool {
        ConnectionPool { name: name.into(), open, opened: open, wait_max_us: open, ..ConnectionPool::default() }
    }

    #[test]
    fn pools_of_one_name_are_added_up() {
        let mut list = Vec::new();
        for pool in [pool("b", 2), pool("a", 1), pool("b", 3), pool("b", 4).ended()] {
            pool.add_to(&mut list);
        }
        let b = ConnectionPool { opened: 9, wait_max_us: 3, closed: 4, ..pool("b", 5) };
        assert_eq!(list, [pool("a", 1), b]);
    }

    #[test]
    fn a_list_has_a_bounded_number_of_names_and_loses_no_count() {
        let mut list = Vec::new();
        (0..1000).for_each(|n| pool(&format!("ended{n}"), 1).add_to_ended(&mut list));
        assert_eq!(list.len(), MAX_ENDED + 1);
        assert_eq!(list.iter().map(|pool| pool.opened).sum::<u64>(), 1000);
        (0..1000).for_each(|n| pool(&n.to_string(), 1).add_to(&mut list));
        assert_eq!(list.len(), MAX_NAMES);
        let others = list.iter().find(|pool| pool.name == OTHER_POOLS).unwrap();
        assert!(others.open > 900 && list.iter().map(|pool| pool.opened).sum::<u64>() == 2000);
        assert!(list.is_sorted_by(|a, b| a.name < b.name));
    }
}
