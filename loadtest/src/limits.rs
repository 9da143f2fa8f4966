//! Every maximum of the load tester, with its reason.

use std::time::Duration;

/// Submission queue entries of one ring: more than one turn of a thread with thousands of
/// connections usually submits; the runtime submits early where it is full.
pub const RING_ENTRIES: u32 = 4096;

/// Connections that may wait to be accepted; the kernel caps it at `net.core.somaxconn`.
pub const LISTEN_BACKLOG: i32 = 4096;

/// First size of a connection's read buffer: a 600 B request and a 1 KiB answer fit with their
/// heads, and ten thousand connections cost 80 MB.
pub const READ_BYTES: usize = 8 * 1024;

/// Largest head that is read, in either direction: twice what common proxies let through, so that
/// a router's own limit is what a test sees.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Header fields of one head. A router may add a dozen to what its client sent.
pub const HEADERS_MAX: usize = 128;

/// Bytes of chunk extensions and trailers together in one body; they carry nothing here.
pub const CHUNK_EXTRAS_BYTES_MAX: u64 = 16 * 1024;

/// Largest request body that the model server keeps (echo, chat, control). Larger ones are
/// counted and hashed, not kept.
pub const BODY_KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Largest answer body of the model server.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Tokens of one answer: hours of streaming at the usual pace.
pub const TOKENS_MAX: u32 = 1_000_000;

/// Longest delay that a behaviour may ask for, so that a typing error does not hang a test.
pub const DELAY_SECONDS_MAX: u64 = 3600;

/// Connections of one run: the ephemeral ports of one address.
pub const CONNECTIONS_MAX: u32 = 60_000;

/// Requests written at once on one connection.
pub const PIPELINE_MAX: u16 = 1024;

/// Largest request body that is generated or read from a file.
pub const REQUEST_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longest latency that is told apart from longer ones: an hour, in nanoseconds.
pub const LATENCY_NANOSECONDS_MAX: u64 = 3_600_000_000_000;

/// Rows of the table Objective × Arm; answers that find no row are counted under the first.
pub const DECISIONS_MAX: usize = 256;

/// Different values of one response header that are told apart, such as Snapshot versions.
pub const LABELS_MAX: usize = 4096;

/// Longest value of such a header that is kept.
pub const LABEL_BYTES_MAX: usize = 256;

/// Rows of the timeline: two hours of seconds. A longer run has rows of two, four, eight … seconds,
/// so that a day needs no more memory than an afternoon.
pub const TIMELINE_ROWS_MAX: usize = 7200;

/// Longest run that may be asked for: a week.
pub const RUN_SECONDS_MAX: u64 = 7 * 24 * 3600;

/// Steps of one list of rates: more than anyone writes by hand.
pub const RATE_STEPS_MAX: usize = 100;

/// Users that are told apart where an Arm's users are counted: 128 KiB for each Objective × Arm.
pub const USERS_COUNTED_MAX: u64 = 1 << 20;

/// Largest server-sent event that is looked into; of a longer one only its start is.
pub const EVENT_BYTES_MAX: usize = 64 * 1024;

/// Largest scenario file: templates of bodies are in it.
pub const SCENARIO_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Recorded bodies of one scenario together; they are all kept in memory.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Values of one attribute, and attributes of one scenario.
pub const ATTRIBUTE_VALUES_MAX: usize = 10_000;

/// Measurements of one search for the capacity.
pub const CAPACITY_STEPS_MAX: u16 = 100;

/// Records that are read ahead of their replay, for each generator thread.
pub const REPLAY_AHEAD_MAX: usize = 256;

/// How long Kafka's brokers may take to tell about a topic.
pub const TOPIC_ANSWER_MAX: Duration = Duration::from_secs(30);

/// Between two looks at a topic's partitions while none has a message.
pub const TOPIC_LOOK: Duration = Duration::from_millis(100);

/// Longest line of a record file: a body of 64 MiB, each byte escaped as two characters.
pub const RECORD_LINE_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Bytes of recorded lines that a thread collects before it hands them to the writer.
pub const RECORD_BATCH_BYTES: usize = 64 * 1024;

/// Batches that may wait for the writer. A full queue holds the generator up rather than losing
/// records; an open loop then tells that it fell behind.
pub const RECORD_BATCHES_MAX: usize = 64;

const _: () = assert!(READ_BYTES <= HEAD_BYTES_MAX, "a buffer grows to its maximum");
