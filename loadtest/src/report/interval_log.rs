//! The latencies of each second as an HdrHistogram log (version 1.3, V2 compressed), which the
//! readers of other languages read.

use std::io::Write;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use crate::recorder::Second;

/// The log's writer over an output and a serialiser that the caller keeps.
pub type Log<'a, W> = IntervalLogWriter<'a, 'a, W, V2DeflateSerializer>;

/// Nanoseconds of a millisecond: HdrHistogram's tools show milliseconds.
const MILLISECOND: f64 = 1e6;

/// Starts a log.
///
/// # Errors
/// What the output says.
pub fn begin<'a, W: Write>(
    out: &'a mut W,
    serializer: &'a mut V2DeflateSerializer,
    started: SystemTime,
) -> std::io::Result<Log<'a, W>> {
    IntervalLogWriterBuilder::new()
        .add_comment("[Latency in nanoseconds, from when a request was due to its last byte]")
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(started)
        .with_base_time(started)
        .with_max_value_divisor(MILLISECOND)
        .begin_log_with(out, serializer)
}

/// Writes one second; those of the warm-up are tagged, so that readers leave them out.
///
/// # Errors
/// What the output says.
pub fn write<W: Write>(log: &mut Log<'_, W>, second: &Second) -> std::io::Result<()> {
    let tag = if second.is_warmup { Tag::new("warmup") } else { None };
    let length = Duration::from_secs(1);
    log.write_histogram(&second.latency, second.start, length, tag).map_err(|error| match error {
        IntervalLogWriterError::IoError(error) => error,
        IntervalLogWriterError::SerializeError(error) => std::io::Error::other(error),
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::recorder::{histogram, record};

    #[test]
    fn the_seconds_of_a_log_add_up_to_the_run_without_its_warmup() {
        let warmup = Duration::from_secs(1);
        let (mut out, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
        let mut expected = histogram();
        {
            let mut log = begin(&mut out, &mut serializer, SystemTime::now()).unwrap();
            for number in 0..5 {
                let mut second = Second::at(Duration::from_secs(number), warmup);
                for microseconds in 1..100 {
                    let latency = Duration::from_micros(microseconds * (number + 1) * 10);
                    record(&mut second.latency, latency);
                    if !second.is_warmup {
                        record(&mut expected, latency);
                    }
                }
                write(&mut log, &second).unwrap();
            }
        }
        let mut read = histogram();
        let mut deserializer = Deserializer::new();
        let mut tags = 0;
        for entry in IntervalLogIterator::new(&out) {
            let LogEntry::Interval(interval) = entry.unwrap() else { continue };
            if interval.tag().is_some() {
                tags += 1;
                continue;
            }
            let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
            read.add(deserializer.deserialize::<u64, _>(&mut bytes.as_slice()).unwrap()).unwrap();
        }
        assert_eq!((tags, read.len()), (1, expected.len()));
        assert_eq!(read, expected);
    }
}
