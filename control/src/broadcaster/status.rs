//! How routers are, as `status` tells it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_shared::{push, snapshot::SnapshotId};
use utoipa::ToSchema;

/// One router, or a socket where one should be.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct RouterStatus {
    /// Where it listens.
    pub socket: String,
    /// Its own name, as it said last.
    pub router: Option<String>,
    /// Its group, as it said last.
    pub group: Option<String>,
    /// Version and commit of its program, as it said last.
    pub build: Option<String>,
    /// How it stands to what it should run.
    pub standing: Standing,
    /// What it runs, or ran when it was there last.
    pub running: Option<RunningVersion>,
    /// What it refused last, if nothing newer has become active on it.
    pub refusal: Option<Refusal>,
    /// Why it is not there; or, where it is, why it was lost before, until it activates something.
    pub error: Option<String>,
    /// When it was heard last, in unix milliseconds.
    pub heard_ms: Option<u64>,
    /// How long it has been running, in milliseconds.
    pub uptime_ms: Option<u64>,
    /// What it says about itself.
    pub health: Option<RouterHealth>,
    /// Of its last activation: from publication to the slowest core's swap, in microseconds.
    pub slowest_swap_us: Option<u32>,
    /// Its sums since it began.
    pub counters: BTreeMap<String, u64>,
}

/// A version and its content.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct RunningVersion {
    /// Its number.
    pub version: u64,
    /// BLAKE3 of the payload, in hexadecimal.
    pub digest: String,
}

impl From<SnapshotId> for RunningVersion {
    fn from(id: SnapshotId) -> Self {
        Self { version: id.version.get(), digest: id.digest.to_string() }
    }
}

/// How a router stands to what it should run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It runs the active version.
    Current,
    /// It runs an older one, and is being told.
    Behind,
    /// It runs an older one, and has refused the active one.
    Refused,
    /// It runs a newer one: the registry has lost versions.
    Ahead,
    /// It runs the active version's number with other content.
    Differs,
    /// It belongs to another group.
    ForeignGroup,
    /// It reads other Snapshot formats.
    OtherFormat,
    /// Nothing is active yet.
    NoTarget,
    /// It is not there.
    Away,
}

impl Standing {
    /// All of them, for metrics.
    pub const ALL: [Self; 9] = [
        Self::Current,
        Self::Behind,
        Self::Refused,
        Self::Ahead,
        Self::Differs,
        Self::ForeignGroup,
        Self::OtherFormat,
        Self::NoTarget,
        Self::Away,
    ];

    /// A stable label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Behind => "behind",
            Self::Refused => "refused",
            Self::Ahead => "ahead",
            Self::Differs => "differs",
            Self::ForeignGroup => "foreign_group",
            Self::OtherFormat => "other_format",
            Self::NoTarget => "no_target",
            Self::Away => "away",
        }
    }
}

/// What a router says about itself.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RouterHealth {
    /// Nothing to tell.
    Good,
    /// It serves a Snapshot that has expired, or that it had to take from disk.
    Stale,
    /// It is stopping.
    Draining,
}

pub(super) const fn router_health(health: push::Health) -> RouterHealth {
    match health {
        push::Health::Good => RouterHealth::Good,
        push::Health::Stale => RouterHealth::Stale,
        push::Health::Draining => RouterHealth::Draining,
    }
}

/// A Snapshot that a router refused.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Refusal {
    /// Which version.
    pub version: u64,
    /// Its content.
    pub digest: String,
    /// `prepare` or `activate`.
    pub step: String,
    /// A stable label.
    pub reason: String,
    /// For people.
    pub detail: String,
    /// When, in unix milliseconds.
    pub at_ms: u64,
}
