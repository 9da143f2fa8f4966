//! Every maximum of the router, with its reason.
//!
//! What `router.toml` can set is bounded here from above; what it cannot set has its only value here.

use std::time::Duration;

// ---- A request -----------------------------------------------------------------------------------

/// Ceiling of `limits.head_bytes_max`. A head is read whole into one pooled buffer of this size, so
/// that this is also what one hostile connection can pin before it is answered.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Floor of `limits.head_bytes_max`: what RFC 9112 §3 asks a server to take as a request line alone.
pub const HEAD_BYTES_MIN: usize = 8_000;

/// What a request line needs beside its target, so that 414 can be told from 431: the longest method,
/// two blanks, `HTTP/1.1`, CR LF, rounded up.
pub const REQUEST_LINE_BYTES_MAX: usize = 64;

/// Ceiling of `limits.body_bytes_max`. Bodies that stream cost no memory; the bound keeps every sum of
/// body lengths far away from overflow.
pub const BODY_BYTES_MAX: u64 = 1 << 40;

/// Ceiling of `limits.body_buffer_bytes_max`: a body that is read whole (JSON attributes, facts, replay)
/// lives in memory until its request ends, times `connections_max` in the worst case.
pub const BODY_BUFFER_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Ceiling of `limits.connections_max`, per worker: one file descriptor each, and as many upstream.
pub const CONNECTIONS_MAX: u32 = 1 << 20;

/// Ceiling of every duration in `router.toml`; no timer arithmetic can overflow below it.
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

// ---- Cores ---------------------------------------------------------------------------------------

/// Workers of one router. Each has its own listeners, pools and counters, which the admin listener sums.
pub const WORKERS_MAX: u16 = 1024;

/// Addresses that one router listens on; each worker opens each of them.
pub const LISTENERS_MAX: usize = 16;

/// Longest time in which an idle worker looks at the published Activation: it is the floor of an idle
/// router's swap time, and the price is a hundred wake-ups per second and core.
pub const WORKER_TICK: Duration = Duration::from_millis(10);

/// The slice that a worker asks the kernel for, the shortest that Linux grants: threads with the usual one (2 to 3 ms)
/// give way to it as soon as it wakes.
pub const WORKER_SLICE: Duration = Duration::from_micros(100);

// ---- Configuration -------------------------------------------------------------------------------

/// Largest `router.toml`. The annotated example is a tenth of it.
pub const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// Largest file that holds one trusted public key, its comment lines included.
pub const TRUSTED_KEY_FILE_BYTES_MAX: u64 = 64 * 1024;

/// Longest path of a Unix socket: `sun_path` of `unix(7)` less its final NUL.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

// ---- Metrics -------------------------------------------------------------------------------------

/// Arms with counters of their own, 64 bytes per worker each; further Arms share one series. The page of
/// metrics stays below 10 MiB.
pub const ARM_SERIES_MAX: usize = 10_000;

// ---- Activation ----------------------------------------------------------------------------------

/// How long ACTIVATE waits for the workers: five hundred of their ticks. A worker that takes longer is
/// stuck, and the controller has to know.
pub const SWAP_PATIENCE: Duration = Duration::from_secs(5);

/// How often the feed looks whether all workers have swapped.
pub const ACKNOWLEDGEMENT_POLL: Duration = Duration::from_micros(200);

// ---- State folder --------------------------------------------------------------------------------

/// Largest `current` file that is read: a form, a version, a digest, and then some.
pub const CURRENT_FILE_BYTES_MAX: u64 = 256;

// ---- Snapshot feed -------------------------------------------------------------------------------

/// Controllers that are connected at once. Each may hold a received frame and a prepared Snapshot, so
/// that this bounds the feed's memory: a leader, its successor, and two people who look.
pub const CONTROLLERS_MAX: usize = 4;

/// From a frame's first byte to its last, and the longest time in which a controller reads nothing of
/// what it was sent. 64 MiB over a Unix socket take well under a second.
pub const FRAME_PATIENCE: Duration = Duration::from_secs(10);

/// What is read from a controller at once, before others have their turn.
pub const PIECE_BYTES: usize = 256 * 1024;

/// Answers that a controller may leave unread before nothing more is read from it.
pub const UNSENT_BYTES_MAX: usize = 1024 * 1024;

/// Between two heartbeats.
pub const HEARTBEAT: Duration = Duration::from_secs(1);

/// Pause after an accept that failed, as it does without descriptors; polling on would spin.
pub const ACCEPT_REST: Duration = Duration::from_millis(100);

/// How long the host names of one Snapshot may take together.
pub const RESOLVE_PATIENCE: Duration = Duration::from_secs(5);

/// Between two attempts to serve what is on disk while a host name in it has no address.
pub const START_AGAIN: Duration = Duration::from_secs(5);

/// Threads that ask the system's resolver at once, which answers one name per thread.
pub const RESOLVER_THREADS: usize = 8;

// ---- The data path -------------------------------------------------------------------------------

/// Submission entries of a core's ring: above what one loop turn queues at 10 000 connections with
/// a cancel each; when it is full, the runtime submits and goes on.
pub const RING_ENTRIES: u32 = 4096;
/// Bytes of a pooled buffer: a request head, most model inputs and outputs, one read of a large one.
pub const BUFFER_BYTES: usize = 32 * 1024;
/// Spare buffers that a core keeps: 32 MiB at most.
pub const BUFFERS_POOLED_MAX: usize = 1024;
/// Buffers that a core lends to its ring for arriving bytes: above what arrives in one turn of a busy core. A
/// power of two. Where more arrives, receiving pauses for a turn. It also bounds what one sender can pin by its first
/// burst: the kernel fills buffers in rounds of 33 (`MULTISHOT_MAX_RETRY` of its `io_uring/net.c`), any number of them
/// within the call that would tell it to stop. From then on a sender that is not read gets one buffer at a time.
pub const LENT_BUFFERS: u16 = 256;
/// Bytes of one connection that may wait to be read before the kernel is told to stop, and one full buffer is
/// as good as that.
pub const ARRIVED_BYTES_MAX: usize = 4 * BUFFER_BYTES;
/// Arrivals up to this length are moved together where they are not read at once: copying costs less than
/// pinning a buffer each.
pub const GATHERED_BYTES_MAX: usize = 4096;
/// Tasks polled before a core looks at its ring again, so that tasks that wake each other cannot starve it.
pub const POLLS_PER_TURN: usize = 4096;
/// Completions of a turn up to which the core counts as calm, and sends by a system call of its own.
pub const CALM_COMPLETIONS_MAX: usize = 2;
/// Connections that wait to be accepted, per core; the kernel cuts it to `somaxconn`.
pub const ACCEPT_BACKLOG: i32 = 4096;
/// Hang-ups handled per loop turn, so that a mass disconnect cannot hold the core.
pub const HANGUPS_PER_TURN: usize = 256;
/// Failures in a row that eject an endpoint: one lost connection must not, a dead process must soon.
pub const FAILURES_TO_EJECT: u32 = 3;
/// The first ejection: about what a model server takes to restart its listener.
pub const EJECTION_FIRST: Duration = Duration::from_secs(1);
/// The longest ejection: recovery by itself within half a minute.
pub const EJECTION_MAX: Duration = Duration::from_secs(30);
/// An endpoint that held for so long after its return begins anew: its next ejection is the first.
pub const EJECTION_FORGOTTEN: Duration = Duration::from_secs(60);
/// Failures are weighed against answers within such a window.
pub const FAILURE_WINDOW: Duration = Duration::from_secs(10);
/// Requests of one core in a window below which a share proves nothing.
pub const FAILURE_SAMPLES_MIN: u64 = 20;
/// Percent of the requests in a window whose failure ejects an endpoint.
pub const FAILURE_PERCENT_TO_EJECT: u64 = 50;
/// Percent of a Shard's endpoints that a share of failures may keep out (cases.md UP-04): beyond it the model is
/// at fault rather than an endpoint, and all that answer are used.
pub const DOUBTED_PERCENT_MAX: usize = 50;
/// Steps by which an endpoint that is back gets its share of the traffic again.
pub const SLOW_START_STEPS: u16 = 16;
/// How long that takes: caches warm, connections open.
pub const SLOW_START_SPAN: Duration = Duration::from_secs(8);
/// The longest rest that a `Retry-After` gets: an endpoint that asks for a day is looked at again.
pub const REST_MAX: Duration = Duration::from_secs(60);
/// The rest of an endpoint whose `Retry-After` is a date, or unreadable.
pub const REST_UNREADABLE: Duration = Duration::from_secs(1);
/// How long the admin listener waits for the workers to tell about their endpoints; each looks every `WORKER_TICK`.
pub const SURVEY_PATIENCE: Duration = Duration::from_secs(1);
/// Endpoints of one Shard that one request can tell apart as tried; further ones may be met twice.
pub const ENDPOINTS_TRIED_MAX: u32 = 64;
/// Endpoints of one Arm that one request tries: the first and three more.
pub const ATTEMPTS_MAX: u32 = 4;
/// Thousandths of a retry that a request earns: one retry per five requests (Finagle: 20 %).
pub const RETRY_MILLIS_PER_REQUEST: u32 = 200;
/// Retries that a core has to spend when it starts.
pub const RETRY_FLOOR: u32 = 10;
/// Retries that a core can save up: a burst when an endpoint dies under full load.
pub const RETRY_SAVED_MAX: u32 = 500;
/// Spare tables that a core keeps, about 4 KiB each.
pub const SCRATCHES_POOLED_MAX: usize = 1024;
/// How long accepting rests when the process is out of descriptors: no spin, recovery within a second.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often unused upstream connections are looked at.
pub const POOL_SWEEP_EVERY: Duration = Duration::from_millis(500);
/// A kept connection that was silent for this long gives back what serving a request needs.
pub const REST_AFTER: Duration = Duration::from_millis(500);
/// How long a closing connection is read on, so that the client gets the answer before the reset.
pub const LINGER_SPAN: Duration = Duration::from_secs(2);
/// How many bytes of a closing connection are read and dropped.
pub const LINGER_BYTES_MAX: usize = 1024 * 1024;
/// Containers inside each other in a JSON body that is read (cases.md JS-03).
pub const JSON_DEPTH_MAX: usize = 128;
/// Numbers beyond a double that a body which is read may have: each costs a parse.
pub const JSON_NUMBERS_BEYOND_MAX: usize = 8;
/// A JSON scratch that grew beyond this is freed after its request.
pub const JSON_SCRATCH_BYTES_MAX: usize = 1024 * 1024;
/// Room for one read of a body that is read whole.
pub const BODY_READ_STEP: usize = 64 * 1024;
/// What is copied rather than given a vector of its own in a write: below this a copy is cheaper.
pub const COPY_BYTES_MAX: usize = 8 * 1024;
/// A request body up to this size is read whole before it is forwarded, if its Objective allows that the
/// request is sent again: the price is its arrival time, the gain that a dying endpoint costs no error.
pub const REPLAY_BYTES_MAX: u64 = 256 * 1024;

// ---- Facts ---------------------------------------------------------------------------------------

/// Commands on one connection that are not answered yet, whoever still waits: 10 ms of 400 000 requests a second with
/// four Facts each. Beyond it a request falls out at once.
pub const FACT_COMMANDS_MAX: usize = 16_384;
/// Bytes of commands that wait to be sent; a cache that takes no more is failing.
pub const FACT_COMMAND_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Spare lookups that a core keeps.
pub const FACT_LOOKUPS_POOLED_MAX: usize = 1024;
/// A reply's line: Redis' errors are shorter.
pub const FACT_REPLY_LINE_BYTES_MAX: usize = 4096;
/// A value above `FACT_BYTES_MAX` is dropped as it comes, up to this size; beyond it the connection ends, since
/// others would wait behind it for longer than any budget.
pub const FACT_SKIP_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Header lines with Facts: what common model servers take beside a client's own (uvicorn: 64 KiB, gunicorn: 8190
/// bytes each) is no limit for them.
pub const FACT_LINES_BYTES_MAX: usize = 4096;
/// Connecting to the cache, and each step of its greeting.
pub const FACT_GREETING_SPAN: Duration = Duration::from_millis(500);
/// A connection on which nothing was answered for so long is given up: it has stalled, not slowed.
pub const FACT_STALL_SPAN: Duration = Duration::from_secs(1);
/// The first pause before connecting again.
pub const FACT_BACKOFF_FIRST: Duration = Duration::from_millis(50);
/// The longest: with a greeting that waits in vain, recovery still takes less than two seconds.
pub const FACT_BACKOFF_MAX: Duration = Duration::from_millis(800);
/// A connection that held for so long shows that the cache is back: pauses begin anew.
pub const FACT_LINK_PROVEN: Duration = Duration::from_secs(5);
/// Slots of a Redis Cluster; its protocol has the number.
pub const CLUSTER_SLOTS: u16 = 16_384;
/// Nodes of a cluster that one core keeps connections to: what the cluster's own makers call its practical limit.
pub const CLUSTER_NODES_MAX: usize = 1000;
/// Bytes of a cluster's answer to who has which slots: a thousand nodes with their replicas, and then some.
pub const CLUSTER_MAP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often a cluster is asked who has which slots where nothing shows that this changed.
pub const CLUSTER_LOOK_EVERY: Duration = Duration::from_secs(30);
/// Least pause between two such questions, so that a slot which moves does not cost one for each of its keys.
pub const CLUSTER_LOOK_PAUSE: Duration = Duration::from_millis(200);
/// How long a node is kept that has no slot, but that another one pointed at.
pub const CLUSTER_NODE_KEPT: Duration = Duration::from_secs(60);
/// Hedged lookups that a core can save up: a burst when a server pauses.
pub const FACT_HEDGES_SAVED_MAX: u32 = 50;
/// Ceiling of `facts.hedge_percent_max`: beyond it a slow server would have its load doubled.
pub const FACT_HEDGE_PERCENT_MAX: u8 = 50;
/// What an entry of the near-cache costs beside its key and value: two allocations, the table and the queue.
pub const NEAR_ENTRY_BYTES: u64 = 128;
/// Ceiling of `facts.near_bytes_max`, per worker.
pub const NEAR_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Ceiling of `facts.budget`.
pub const FACT_BUDGET_MAX: Duration = Duration::from_secs(1);
/// Bytes of a file of Facts: it is held in memory twice while it is read again.
pub const FACTS_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How often a file of Facts is looked at.
pub const FACTS_FILE_LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the host name of the cache is resolved again.
pub const FACTS_NAME_LOOK_EVERY: Duration = Duration::from_secs(5);
/// Bytes of a password.
pub const SECRET_BYTES_MAX: usize = 4096;
/// Spare tables of served Facts that a core keeps.
pub const FACTS_SERVED_POOLED_MAX: usize = 1024;
/// Room of such a table that is kept; one that grew beyond it is freed.
pub const FACTS_SERVED_BYTES_MAX: usize = 256 * 1024;

// ---- Shadow records and Exposures ----------------------------------------------------------------

/// Copies that wait in a worker's ring: what 200 000 records/s leave behind within a `SHADOW_TICK`. Their
/// bytes are bounded by `shadow.buffer_bytes_max`.
pub const SHADOW_RING_RECORDS: usize = 2048;
/// How often the shadow core looks into the rings: a record is no hurry, and a wake-up is not free.
pub const SHADOW_TICK: Duration = Duration::from_millis(10);
/// Copies taken from one ring before the next one has its turn.
pub const SHADOW_TURN_RECORDS: usize = 512;
/// Entries of the shadow core's rings: one file is read or written at a time.
pub const SHADOW_RING_ENTRIES: usize = 16;
/// Memory that the shadow core registers for direct I/O; larger writes come from the allocator.
pub const SHADOW_IO_BYTES: usize = 1024 * 1024;
/// What an emptied copy keeps of each buffer.
pub const COPY_KEPT_BYTES_MAX: usize = 64 * 1024;
/// Ceiling of `shadow.request_bytes_max` and of `shadow.response_bytes_max`.
pub const SHADOW_BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Room for an envelope beside the bodies: the longest target, Unit and headers, escaped.
pub const ENVELOPE_BYTES_MAX: usize = 256 * 1024;
/// Largest `shadow.buffer_bytes_max`.
pub const SHADOW_BUFFER_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Caps of targets that are remembered: as many as a router has targets, and then some.
pub const RATES_MAX: usize = 10_000;
/// Exposures of one hour that are remembered, 16 bytes each.
pub const EXPOSURES_REMEMBERED_MAX: usize = 1_000_000;
/// Largest record in the spool.
pub const SPOOL_RECORD_BYTES_MAX: usize = 6 * 1024 * 1024;
/// A segment is not written behind this: it is also what one read for replay holds in memory.
pub const SEGMENT_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// What waits in memory before it is written without waiting for the next tick.
pub const SPOOL_WRITE_BYTES: usize = 512 * 1024;
/// Between two syncs: what a loss of power may cost. A crash costs nothing that was written.
pub const SPOOL_SYNC_EVERY: Duration = Duration::from_secs(1);
/// Least `shadow.spool_bytes_max`: two segments, so that dropping the oldest leaves the one that is written.
pub const SPOOL_BYTES_MIN: u64 = 2 * SEGMENT_BYTES_MAX;
/// Between two log lines about a spool that cannot be written.
pub const SPOOL_COMPLAINT_EVERY: Duration = Duration::from_secs(60);
/// Bytes of records that are sent from the spool before the brokers' answers are waited for.
pub const REPLAY_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// First pause after the brokers did not answer.
pub const KAFKA_AGAIN_FIRST: Duration = Duration::from_millis(500);
/// Longest such pause: records flow again within so many seconds of the brokers' return.
pub const KAFKA_AGAIN_MAX: Duration = Duration::from_secs(8);
/// Events of librdkafka that are picked up at once; one holds all of a batch's records.
pub const KAFKA_EVENTS_PER_TURN: usize = 16;
/// Records that wait while the producer gives back what is outstanding; then the rings fill.
pub const RETREAT_WAITING_MAX: usize = 4096;
/// How long a stop waits for the brokers; what they have not taken then goes to the spool (cases.md KF-03).
pub const FLUSH_PATIENCE: Duration = Duration::from_secs(5);

const _: () = assert!(
    2 * SHADOW_BODY_BYTES_MAX + ENVELOPE_BYTES_MAX <= SPOOL_RECORD_BYTES_MAX,
    "whatever the settings allow fits a record"
);
const _: () =
    assert!(SPOOL_RECORD_BYTES_MAX as u64 <= SEGMENT_BYTES_MAX, "a record fits a segment");

// ---- Admin listener ------------------------------------------------------------------------------

/// Connections that the admin listener answers at once: a scraper or two, some probes, a few people. Each
/// costs a thread for at most `ADMIN_PATIENCE`.
pub const ADMIN_CONNECTIONS_MAX: usize = 16;

/// From accepting an admin connection to its whole answer: what a scraper waits by default.
pub const ADMIN_PATIENCE: Duration = Duration::from_secs(10);

/// How long an answered admin connection waits for its client's end.
pub const ADMIN_LINGER: Duration = Duration::from_secs(1);

/// Largest head of an admin request; browsers with cookies stay below.
pub const ADMIN_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Header fields of an admin request.
pub const ADMIN_HEADERS_MAX: usize = 64;
