use std::time::Duration;

use super::*;

fn page(counters: &Counters) -> String {
    let mut page = MetricsText::default();
    counters.write(&mut page);
    page.into_text()
}

/// The value of the line that begins with `series`.
fn value<'a>(page: &'a str, series: &str) -> &'a str {
    let line = page
        .lines()
        .find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
    line.unwrap_or_else(|| panic!("no {series} in\n{page}")).rsplit(' ').next().unwrap()
}

#[test]
fn each_block_has_one_writer() {
    let counters = Counters::new(2);
    let first = counters.worker(WorkerIndex(0));
    assert!(first.is_some());
    assert!(counters.worker(WorkerIndex(0)).is_none());
    assert!(counters.worker(WorkerIndex(1)).is_some());
    assert!(counters.worker(WorkerIndex(2)).is_none());
    assert!(counters.feed().is_some());
    assert!(counters.feed().is_none());
}

#[test]
fn the_page_sums_what_workers_counted_on_their_threads() {
    let counters = Counters::new(3);
    let threads: Vec<_> = (0..3)
        .map(|index| {
            let worker = counters.worker(WorkerIndex(index)).unwrap();
            std::thread::spawn(move || {
                for _ in 0..1_000 {
                    worker.requests.add(1);
                    worker.requests_active.raise();
                    worker.requests_active.lower();
                }
                worker.connections_active.raise();
                worker.responses.add(ResponseClass::ClientError, u64::from(index));
                worker.bad_requests.add("json_malformed", 2);
                worker.overhead.record(Duration::from_micros(20));
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let page = page(&counters);
    assert_eq!(value(&page, "switchboard_requests_total"), "3000");
    assert_eq!(value(&page, "switchboard_requests_active"), "0");
    assert_eq!(value(&page, "switchboard_connections_active"), "3");
    assert_eq!(value(&page, "switchboard_responses_total{class=\"4xx\"}"), "3");
    assert_eq!(value(&page, "switchboard_bad_requests_total{reason=\"json_malformed\"}"), "6");
    assert_eq!(value(&page, "switchboard_overhead_seconds_bucket{le=\"0.000016\"}"), "0");
    assert_eq!(value(&page, "switchboard_overhead_seconds_bucket{le=\"0.00002\"}"), "3");
    assert_eq!(value(&page, "switchboard_overhead_seconds_bucket{le=\"+Inf\"}"), "3");
    assert_eq!(value(&page, "switchboard_overhead_seconds_sum"), "0.00006");
    assert_eq!(value(&page, "switchboard_overhead_seconds_count"), "3");
    assert_eq!(counters.sum(|worker| worker.requests.get()), 3_000);
}

#[test]
fn every_family_is_announced_once_before_its_samples() {
    let page = page(&Counters::new(1));
    let mut announced = std::collections::HashSet::new();
    let mut current = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(announced.insert(name.to_owned()), "{name} twice");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            current = name;
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.ends_with('.'), "{line}");
        } else {
            assert!(line.starts_with(current), "{line} under {current}");
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(announced.len() > 20);
}

#[test]
fn blocks_of_two_workers_share_no_cache_line() {
    assert_eq!(align_of::<WorkerCounters>() % 128, 0);
    assert_eq!(size_of::<WorkerCounters>() % 128, 0);
    assert_eq!(size_of::<arms::ArmCounters>(), 64);
    assert_eq!(align_of::<arms::ArmCounters>(), 64);
}
