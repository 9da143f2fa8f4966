//! Every maximum of the contract, with its reason.
//!
//! All of them are checked when a Snapshot is built and again when it is opened, so that a signed
//! but absurd Snapshot costs one refusal and never the memory or the time of a request.

/// Largest Snapshot in bytes, header included. 10 000 Objectives × 8 Rules take about 12 MiB, so
/// this leaves room for five times that; larger ones would make an Activation slow on every host.
pub const SNAPSHOT_BYTES_MAX: usize = 64 << 20;

/// Objectives of one Snapshot: ten times what the targets are measured with.
pub const OBJECTIVES_MAX: usize = 100_000;
/// Model versions of one Snapshot: one per Objective.
pub const MODELS_MAX: usize = 100_000;
/// Shards of one Snapshot; each has its own pools on every core.
pub const SHARDS_MAX: usize = 10_000;
/// Endpoints of one Shard; balancing looks at two of them, health checks at all.
pub const ENDPOINTS_MAX: usize = 1_024;
/// Largest relative weight of an endpoint: three digits tell 0.1 % apart.
pub const ENDPOINT_WEIGHT_MAX: u16 = 1_000;
/// Facts of one Snapshot.
pub const FACTS_MAX: usize = 10_000;
/// Layers of one Snapshot: far more than anyone can reason about.
pub const LAYERS_MAX: usize = 10_000;

/// Attributes of one Objective: a Context lives on the stack, 24 bytes for each.
pub const ATTRIBUTES_MAX: usize = 32;
/// Arms of one Objective: its per-Arm counters and pools stay small.
pub const ARMS_MAX: usize = 64;
/// Rules of one Objective: each one that is tried costs a request up to two keyed hashes.
pub const RULES_MAX: usize = 64;
/// Facts of one Arm: they share one pipelined lookup within 10 ms.
pub const FACTS_PER_ARM_MAX: usize = 32;
/// Bytes of one Fact in the cache; a larger one is not read: with all Facts of an Arm it has to pass
/// within 10 ms.
pub const FACT_BYTES_MAX: usize = 64 << 10;
/// Names in the JSON Pointer to the object that holds an Arm's Facts.
pub const FACTS_POINTER_DEPTH_MAX: usize = 8;

/// Shadow targets of one Objective: a request's copy says in one byte for which of them it is.
pub const SHADOW_TARGETS_MAX: usize = 8;
/// Members that one shadow target keeps or drops.
pub const SHADOW_MEMBERS_MAX: usize = 64;

/// Nesting of a Predicate as written; the compiler recurses, the evaluator does not.
pub const PREDICATE_DEPTH_MAX: usize = 32;
/// Tests of one Predicate: bounds what one Rule costs a request.
pub const PREDICATE_TESTS_MAX: usize = 256;
/// Tests of all Predicates of one Objective.
pub const TESTS_MAX: usize = RULES_MAX * PREDICATE_TESTS_MAX;
/// Values of one `in` list: found by a table, so the bound is about the Snapshot's size.
pub const IN_VALUES_MAX: usize = 10_000;
/// Comparators of one semantic version range, as the `semver` crate has it.
pub const SEMVER_COMPARATORS_MAX: usize = 32;

/// Bytes of a name that becomes a header value or a metric label.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes of a text in the Snapshot, and of one attribute of a request: what common servers take as
/// one header line. It bounds what hashing a Unit costs.
pub const TEXT_BYTES_MAX: usize = 8_192;
/// Longest path of a Unix socket: `sun_path` holds 108 bytes, the last one NUL.
pub const UNIX_PATH_BYTES_MAX: usize = 107;
/// Longest host name (RFC 1035 §2.3.4).
pub const HOST_BYTES_MAX: usize = 253;
/// Longest timeout: one day; a larger one is a typing error, and a timer may not hold it.
pub const TIMEOUT_MS_MAX: u32 = 86_400_000;

/// Public keys that a router trusts at once: old and new of each of a few signers.
pub const TRUSTED_KEYS_MAX: usize = 16;
/// How far the clocks of signer and router may differ before `not_before` or `expires` refuse.
pub const CLOCK_SKEW_MS_MAX: u64 = 60_000;

/// Largest body of a push frame that carries no Snapshot: room for `COUNTERS_MAX` counters.
pub const SMALL_FRAME_BYTES_MAX: usize = 256 << 10;
/// Largest push frame after its length field: a kind and a Snapshot.
pub const FRAME_BYTES_MAX: usize = SNAPSHOT_BYTES_MAX + 1;
/// Bytes of a counter's name in a heartbeat, labels included.
pub const COUNTER_NAME_BYTES_MAX: usize = 192;
/// Counters of one heartbeat.
pub const COUNTERS_MAX: usize = 1_024;
/// Cores of one router.
pub const CORES_MAX: usize = 1_024;
/// Snapshot formats that one router reads.
pub const FORMATS_MAX: usize = 16;
/// Bytes of a text in a push frame, such as why a Snapshot was refused.
pub const FRAME_TEXT_BYTES_MAX: usize = 4_096;

const _: () = assert!(OBJECTIVES_MAX < u32::MAX as usize, "an Objective's index fits 32 bits");
const _: () = assert!(MODELS_MAX < u32::MAX as usize, "a Model version's index fits 32 bits");
const _: () = assert!(SHARDS_MAX < u16::MAX as usize, "a Shard's index fits 16 bits");
const _: () = assert!(FACTS_MAX < u16::MAX as usize, "a Fact's index fits 16 bits");
const _: () = assert!(LAYERS_MAX < u16::MAX as usize, "a Layer's index fits 16 bits");
const _: () = assert!(ATTRIBUTES_MAX < u8::MAX as usize, "an attribute's index fits 8 bits");
const _: () = assert!(ARMS_MAX < u8::MAX as usize, "an Arm's index fits 8 bits");
const _: () = assert!(RULES_MAX < u8::MAX as usize, "a Rule's index fits 8 bits");
const _: () = assert!(
    TESTS_MAX < 0xfffe,
    "a test's index stays below the two sentinels of the predicate code"
);
const _: () = assert!(FRAME_BYTES_MAX < u32::MAX as usize, "a frame's length fits its 32 bits");
const _: () = assert!(
    COUNTERS_MAX * (2 + COUNTER_NAME_BYTES_MAX + 8) < SMALL_FRAME_BYTES_MAX - 1_024,
    "a full heartbeat fits its frame"
);
