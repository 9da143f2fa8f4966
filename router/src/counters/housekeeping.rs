//! What the housekeeping thread counts.

use super::block::counter_block;
use super::cell::{By, Counter, Gauge};
use super::histogram::Histogram;
use super::labels::SnapshotRefusal;

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
