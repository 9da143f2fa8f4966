//! A run of days needs no more memory than one of hours. In a process of its own, whose memory is
//! what is measured.

#![expect(clippy::print_stdout, reason = "the measured numbers belong into the test's output")]

use std::time::{Duration, Instant, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use switchboard_loadtest::limits::TIMELINE_ROWS_MAX;
use switchboard_loadtest::recorder::decisions::Seen;
use switchboard_loadtest::recorder::{Failure, Second, Tally, Times};
use switchboard_loadtest::report::interval_log;
use switchboard_loadtest::report::timeline::Timeline;

/// Counts some requests of one second, with labels that never come again.
fn second(number: u64, tally: &mut Tally) -> Second {
    let mut second = Second::at(Duration::from_secs(number), Duration::ZERO);
    for request in 0..20 {
        let due = Instant::now();
        let latency = Duration::from_micros(number % 977 * 100 + request);
        tally.answer(200, Times { due, sent: due, done: due + latency });
        tally.fail(Failure::Reset);
        let objective = tally.decisions.labels.of(format!("OBJECTIVE_{}", number % 300).as_bytes());
        let snapshot = tally.decisions.labels.of(format!("{}", number * 20 + request).as_bytes());
        let seen = Seen { objective, snapshot, ..Seen::default() };
        tally.decisions.count(seen, Some((number * 20 + request) % 100_000), 1_000_000, None);
        second.requests += 1;
        second.latency.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }
    second
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}

#[test]
fn what_a_run_remembers_does_not_grow_with_its_seconds_or_requests() -> std::io::Result<()> {
    let (mut out, mut serializer) = (std::io::sink(), V2DeflateSerializer::new());
    let mut log = interval_log::begin(&mut out, &mut serializer, SystemTime::now())?;
    let (mut tally, mut timeline) = (Tally::default(), Timeline::default());
    let mut pass = |seconds: std::ops::Range<u64>| -> std::io::Result<u64> {
        for number in seconds {
            timeline.add(second(number, &mut tally));
            for closed in timeline.take_closed() {
                interval_log::write(&mut log, &closed)?;
            }
        }
        Ok(resident_bytes())
    };
    // Every table is full and the timeline has been halved once when the first part ends.
    let full = TIMELINE_ROWS_MAX as u64 + 500;
    let after_hours = pass(0..full)?;
    let after_more = pass(full..2 * full)?;
    println!("resident: {after_hours} bytes after {full} s, {after_more} after twice that");
    assert!(after_hours > 1_000_000, "{after_hours}");
    assert!(after_more < after_hours + 2_000_000, "{after_hours} grew to {after_more}");
    Ok(())
}
