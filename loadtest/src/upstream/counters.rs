//! What the model server has seen: one set of counters per thread, summed when asked for.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// Requests whose head and body were whole.
    Requests,
    /// Answers that were written to their last byte.
    Answers,
    /// Connections that were accepted.
    Connections,
    /// Connections that have ended.
    ConnectionsClosed,
    /// Bytes of request bodies.
    BodyBytes,
    /// Faults that were injected.
    Faults,
    /// Clients that went away before their answer's last byte.
    ClientsGone,
    /// Heads or bodies that are not HTTP.
    Malformed,
    /// Request identifiers that found no room.
    DeliveriesDropped,
}

const COUNTS: usize = Count::DeliveriesDropped as usize + 1;

/// One thread's counters. Padded, so that no two threads write to one cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    values: [AtomicU64; COUNTS],
    /// Locked by its own thread for each request that is counted, by others only to be read.
    deliveries: Mutex<HashMap<Box<[u8]>, u32>>,
}

impl Counters {
    /// Adds to one counter.
    pub fn add(&self, count: Count, value: u64) {
        self.values[count as usize].fetch_add(value, Ordering::Relaxed);
    }

    /// Counts one delivery of the request named `id`; at most `ids_max` different ones.
    pub fn deliver(&self, id: &[u8], ids_max: usize) {
        let Ok(mut deliveries) = self.deliveries.lock() else { return };
        if let Some(times) = deliveries.get_mut(id) {
            *times += 1;
        } else if deliveries.len() < ids_max {
            deliveries.insert(id.into(), 1);
        } else {
            self.add(Count::DeliveriesDropped, 1);
        }
    }

    /// Starts again from zero. Connections that are open now stay counted as open.
    pub fn reset(&self) {
        let open = self.get(Count::Connections).saturating_sub(self.get(Count::ConnectionsClosed));
        for value in &self.values {
            value.store(0, Ordering::Relaxed);
        }
        self.add(Count::Connections, open);
        if let Ok(mut deliveries) = self.deliveries.lock() {
            deliveries.clear();
        }
    }

    fn get(&self, count: Count) -> u64 {
        self.values[count as usize].load(Ordering::Relaxed)
    }
}

/// All threads' counters together.
#[derive(Debug, Default, Serialize)]
pub struct Stats {
    /// See [`Count`].
    pub requests: u64,
    /// See [`Count`].
    pub answers: u64,
    /// Connections that were accepted.
    pub connections: u64,
    /// Connections that are open now, the asking one among them.
    pub connections_open: u64,
    /// See [`Count`].
    pub body_bytes: u64,
    /// See [`Count`].
    pub faults: u64,
    /// See [`Count`].
    pub clients_gone: u64,
    /// See [`Count`].
    pub malformed: u64,
    /// See [`Count`].
    pub deliveries_dropped: u64,
    /// How often each `x-request-id` was delivered, where that is counted.
    pub deliveries: HashMap<String, u32>,
}

impl Stats {
    /// Sums the threads' counters.
    pub fn sum(threads: &[Counters]) -> Self {
        let total = |count| threads.iter().map(|counters| counters.get(count)).sum::<u64>();
        let connections = total(Count::Connections);
        let mut stats = Self {
            requests: total(Count::Requests),
            answers: total(Count::Answers),
            connections,
            connections_open: connections.saturating_sub(total(Count::ConnectionsClosed)),
            body_bytes: total(Count::BodyBytes),
            faults: total(Count::Faults),
            clients_gone: total(Count::ClientsGone),
            malformed: total(Count::Malformed),
            deliveries_dropped: total(Count::DeliveriesDropped),
            deliveries: HashMap::new(),
        };
        for deliveries in threads.iter().filter_map(|counters| counters.deliveries.lock().ok()) {
            for (id, times) in deliveries.iter() {
                *stats.deliveries.entry(String::from_utf8_lossy(id).into_owned()).or_default() +=
                    times;
            }
        }
        stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_add_up_over_threads_and_stay_bounded() {
        let threads = [Counters::default(), Counters::default()];
        threads[0].deliver(b"a", 2);
        threads[1].deliver(b"a", 2);
        threads[0].deliver(b"b", 2);
        threads[0].deliver(b"c", 2);
        let stats = Stats::sum(&threads);
        assert_eq!(stats.deliveries["a"], 2);
        assert_eq!(stats.deliveries["b"], 1);
        assert_eq!((stats.deliveries.len(), stats.deliveries_dropped), (2, 1));
    }

    #[test]
    fn a_reset_keeps_open_connections_open() {
        let threads = [Counters::default()];
        threads[0].add(Count::Connections, 5);
        threads[0].add(Count::ConnectionsClosed, 2);
        threads[0].add(Count::Requests, 9);
        threads[0].reset();
        let stats = Stats::sum(&threads);
        assert_eq!((stats.requests, stats.connections_open), (0, 3));
    }
}
