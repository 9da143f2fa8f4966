//! Every maximum of the shadow worker.

use std::time::Duration;

/// Records that are replayed at the same time. Each holds its record and its answer.
pub const CONCURRENCY_MAX: u16 = 1_024;
/// Larger records are not replayed; a broker's own default is 1 MiB.
pub const RECORD_BYTES_MAX: usize = 8 << 20;
/// Larger answers of a candidate are not read to their end.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Of an answer that goes into its result: with the rest it stays below a broker's default of 1 MiB.
pub const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Differences that a result names.
pub const DIFFERENCES_MAX: usize = 8;
/// Bytes of a value that a difference shows.
pub const EXCERPT_BYTES_MAX: usize = 200;
/// Attempts at one record that reach the candidate and bring no answer.
pub const ATTEMPTS_MAX: u16 = 100;
/// Kept connections per endpoint that wait for their next request.
pub const IDLE_CONNECTIONS_MAX: usize = 64;
/// First wait after an endpoint refused a connection, or an attempt failed; doubled each time.
pub const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// Longest wait: a candidate that is back is noticed within this.
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// Full for so long, the worker pauses its partitions and asks the broker again: a group's member that does not ask
/// holds up the others when partitions are shared out anew.
pub const PAUSE_AFTER: Duration = Duration::from_secs(5);
/// Between two commits of offsets: what a crash makes a worker replay again.
pub const COMMIT_SPAN: Duration = Duration::from_secs(1);
/// Between two lines of progress, and two writings of the report's files.
pub const PROGRESS_SPAN: Duration = Duration::from_secs(10);
/// How long a worker that is told to stop waits for what is under way; the rest is replayed by the next one.
pub const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long the broker may take to say which partitions a topic has.
pub const METADATA_MAX: Duration = Duration::from_secs(15);
/// Results whose ids a report remembers, so that one that was stored twice counts once: 16 bytes each.
pub const REPORT_IDS_MAX: usize = 4 << 20;
/// Objectives that a report has a line for.
pub const REPORT_OBJECTIVES_MAX: usize = 1_000;
/// Labels of one kind, such as reasons, that a report counts on their own; results come from outside.
pub const REPORT_LABELS_MAX: usize = 64;
/// Disagreements that a report shows.
pub const WORST_MAX: usize = 20;
