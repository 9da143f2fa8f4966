//! What came of a change, and how everything is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Deployer;
use crate::{
    broadcaster::RouterStatus,
    plan::Plan,
    registry::{Evidence, RegistryError, VersionRecord},
};

/// How a change ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It says what is active already: no version was made.
    Unchanged,
    /// It is active.
    Active,
    /// The gate did not let it leave.
    FailedValidation,
    /// A router refused it; none has activated it.
    FailedRefused,
    /// It has a version, and is on its way.
    Pending,
}

/// What came of a change.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// Its version; of `unchanged`, the one that is active.
    pub version: Option<u64>,
    /// Why it failed.
    pub reason: Option<String>,
    /// What it changes.
    pub plan: Plan,
    /// What was checked and seen.
    pub evidence: Vec<Evidence>,
}

/// How everything is.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, ToSchema)]
pub struct Status {
    /// The routers' group.
    pub group: String,
    /// Names the public key that verifies Snapshots.
    pub key_id: String,
    /// The version that routers are to evaluate.
    pub active: Option<VersionRecord>,
    /// How many Objectives it has.
    pub objectives: usize,
    /// Versions on their way.
    pub pending: Vec<VersionRecord>,
    /// The newest version that failed after the active one, if there is one.
    pub last_failure: Option<VersionRecord>,
    /// Every router, by socket.
    pub routers: Vec<RouterStatus>,
}

/// How far back a failure is looked for.
const RECENT_MAX: u32 = 50;

impl Deployer {
    /// How everything is.
    ///
    /// # Errors
    /// The registry's.
    pub async fn status(&self) -> Result<Status, RegistryError> {
        let active = self.active();
        let since = active.as_ref().map_or(0, |active| active.record.version);
        let recent = self.registry().versions(RECENT_MAX).await?;
        let failed = |record: &VersionRecord| {
            record.state == crate::lifecycle::State::Failed && record.version > since
        };
        Ok(Status {
            group: self.group().to_owned(),
            key_id: self.0.options.key.public().id().to_string(),
            active: active.as_ref().map(|active| active.record.clone()),
            objectives: active.map_or(0, |active| active.content.set.objectives.len()),
            pending: self.registry().unfinished().await?,
            last_failure: recent.into_iter().find(failed),
            routers: self.broadcaster().status(),
        })
    }
}
