//! What the threads of the housekeeping core count.

use super::block::counter_block;
use super::cell::{By, Counter, Gauge};
use super::histogram::Histogram;
use super::labels::{ShadowLoss, SnapshotRefusal};
use crate::shadow::owned::Kind;

counter_block! {
    /// What the snapshot feed counts. Only its thread writes it.
    pub struct FeedCounters {
        /// Snapshots that became the running one.
        activations: Counter = "switchboard_activations_total",
        /// Snapshots that were refused; the running one served on.
        refusals: By<SnapshotRefusal, { SnapshotRefusal::COUNT }> = "switchboard_snapshot_refusals_total",
        /// Connections of controllers that are open.
        controllers_active: Gauge = "switchboard_controllers_active",
        /// Connections of controllers that were accepted.
        controllers_accepted: Counter = "switchboard_controllers_accepted_total",
        /// Connections that were turned away: user not allowed, or too many.
        controllers_refused: Counter = "switchboard_controllers_refused_total",
        /// Connections closed for a torn, oversized or unknown frame.
        frames_refused: Counter = "switchboard_frames_refused_total",
        /// From ACTIVATE until the last worker had swapped.
        swap: Histogram = "switchboard_activation_seconds",
        /// From PREPARE until the Snapshot was verified and its tables were made.
        prepare: Histogram = "switchboard_prepare_seconds",
    }
}

counter_block! {
    /// What the shadow core counts. Only its thread writes it.
    pub struct ShadowCounters {
        /// Records that the brokers confirmed.
        shadow_delivered: By<Kind, { Kind::ALL.len() }> = "switchboard_shadow_delivered_total",
        /// Records that went into the spool, whether they were delivered later or not.
        shadow_spooled: By<Kind, { Kind::ALL.len() }> = "switchboard_shadow_spooled_total",
        /// Shadow records that were given up.
        shadow_dropped: By<ShadowLoss, { ShadowLoss::COUNT }> = "switchboard_shadow_dropped_total",
        /// Exposures that were given up.
        exposures_dropped: By<ShadowLoss, { ShadowLoss::COUNT }> = "switchboard_exposures_dropped_total",
        /// Exposures that were told already this hour.
        exposures_repeated: Counter = "switchboard_exposures_repeated_total",
        /// Records that the brokers did not confirm in time; they went to the spool, or stayed there.
        kafka_failures: Counter = "switchboard_kafka_failures_total",
        /// Whether records go to the brokers without the spool.
        kafka_direct: Gauge = "switchboard_kafka_direct",
        /// Records in the spool.
        spool_records: Gauge = "switchboard_spool_records",
        /// Bytes of the spool's files.
        spool_bytes: Gauge = "switchboard_spool_bytes",
    }
}
