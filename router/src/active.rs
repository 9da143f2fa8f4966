//! A Snapshot with all that can be derived from it before the first request meets it.
//!
//! Made off the network cores, when a Snapshot is prepared; immutable from then on.

use std::sync::Arc;

use switchboard_shared::snapshot::{ArmIndex, ObjectiveIndex, RuleIndex, ShardIndex, Snapshot};

mod endpoints;
mod headers;

pub use endpoints::{EndpointAddress, HostNames, Unresolved, host_names};

use crate::cores::WorkerIndex;
use crate::counters::arms::{ArmCounters, ArmSeries};
use headers::DecisionHeaders;

/// What a worker evaluates.
#[derive(Debug)]
pub struct Active {
    /// The Snapshot itself.
    pub snapshot: Snapshot,
    /// Place of each Objective's first Arm among the Arms of all Objectives.
    first_arms: Box<[u32]>,
    headers: DecisionHeaders,
    endpoints: Box<[Box<[EndpointAddress]>]>,
    series: ArmSeries,
}

/// Why no tables could be made for a Snapshot.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// An endpoint's host name has no address.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    /// More header text than 4 GiB.
    #[error("the decision headers of all Arms take more than 4 GiB")]
    TooLarge,
}

impl PrepareError {
    /// A stable label, for metrics and `REFUSED` frames.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unresolved(_) => "unresolved_endpoint",
            Self::TooLarge => "too_large",
        }
    }
}

impl Active {
    /// Derives the tables of a Snapshot for this many workers. `names` are its host names, resolved;
    /// `before` is what is active now, whose counters live on.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub fn prepare(
        snapshot: Snapshot,
        names: &HostNames,
        workers: usize,
        before: Option<&Arc<Self>>,
    ) -> Result<Self, PrepareError> {
        let payload = snapshot.payload();
        let endpoints = endpoints::addresses(payload, names)?;
        let headers = DecisionHeaders::render(payload, snapshot.version())?;
        let before = before.map(|active| (&active.snapshot, &active.series));
        let series = ArmSeries::new(payload, workers, before);
        let mut arms = 0_u32;
        let first_arms = payload
            .objectives
            .iter()
            .map(|objective| {
                let first = arms;
                arms = arms.saturating_add(objective.arms.len().try_into().unwrap_or(u32::MAX));
                first
            })
            .collect();
        Ok(Self { first_arms, headers, endpoints, series, snapshot })
    }

    /// The response headers that tell about an Arm, each with its CR LF:
    /// `x-switchboard-objective`, `-arm`, `-model`, `-snapshot`. Hot path: three loads.
    #[inline]
    #[must_use]
    pub fn arm_headers(&self, objective: ObjectiveIndex, arm: ArmIndex) -> &[u8] {
        self.headers.arms.text(objective, arm.get())
    }

    /// `x-switchboard-experiment` with its CR LF if that Rule is an experiment, else nothing.
    #[inline]
    #[must_use]
    pub fn experiment_header(&self, objective: ObjectiveIndex, rule: RuleIndex) -> &[u8] {
        self.headers.rules.text(objective, rule.get())
    }

    /// Addresses of a Shard's endpoints, in the Snapshot's order.
    #[inline]
    #[must_use]
    pub fn endpoints(&self, shard: ShardIndex) -> &[EndpointAddress] {
        &self.endpoints[shard.get()]
    }

    /// What one worker counts for an Arm. Hot path: three loads.
    #[inline]
    #[must_use]
    pub fn arm_counters(
        &self,
        objective: ObjectiveIndex,
        arm: ArmIndex,
        worker: WorkerIndex,
    ) -> &ArmCounters {
        self.series.of(self.first_arms[objective.get()] as usize + arm.get(), worker)
    }

    /// The counters of all Arms.
    #[must_use]
    pub fn series(&self) -> &ArmSeries {
        &self.series
    }
}

#[cfg(test)]
mod tests;
