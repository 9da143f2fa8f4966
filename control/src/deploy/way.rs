//! One change's way: Assign → Validate → Activate, each step persisted before the next begins.

use std::sync::Arc;

use switchboard_shared::snapshot::{Expectations, Snapshot, SnapshotVersion, build};
use tokio::sync::oneshot;

use super::{ActiveVersion, DeployError, Deployer, Ended, Report, blocking};
use crate::{
    broadcaster::{Outcome, Participant, Target},
    clock, crash,
    gate::new_probes,
    lifecycle::State,
    plan::Plan,
    registry::{Action, Assignment, Content, Evidence, Signed},
    rules::Draft,
};

/// A change that is about to be made.
pub(super) struct Change {
    pub(super) action: Action,
    pub(super) restores: Option<u64>,
    pub(super) actor: String,
    pub(super) draft: Draft,
    pub(super) plan: Plan,
}

/// Tells a caller that does not wait for the end which version the change has.
pub(super) struct Assigned(oneshot::Sender<Report>);

impl Assigned {
    pub(super) fn channel() -> (Self, oneshot::Receiver<Report>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }
}

/// Takes a change as far as it goes.
pub(super) async fn go(
    deployer: &Deployer,
    change: Change,
    assigned: Assigned,
) -> Result<Report, DeployError> {
    let before = deployer.active();
    if change.plan.is_empty() {
        let version = before.as_ref().map(|active| active.record.version);
        let evidence = Vec::new();
        let plan = change.plan;
        return Ok(Report { ended: Ended::Unchanged, version, reason: None, plan, evidence });
    }
    let Change { action, restores, actor, draft, plan } = change;
    let content = Content { set: draft.set, allocations: draft.allocations };
    let options = &deployer.0.options;
    let assignment = Assignment {
        action,
        restores,
        actor: &actor,
        content: &content,
        version_min: options.version_min,
        now_ms: clock::unix_ms(),
    };
    let version = options.registry.assign(&assignment).await?;
    let report = |ended, reason, evidence| Report {
        ended,
        version: Some(version),
        reason,
        plan: plan.clone(),
        evidence,
    };
    // Whoever waits for the end does not listen here.
    drop(assigned.0.send(report(Ended::Pending, None, Vec::new())));
    crash::point("assigned");

    let way = Way { deployer, version };
    let (target, snapshot) = way.sign(draft.definition).await?;
    crash::point("validating");

    let empty = Content::default();
    let old = before.as_ref().map_or(&empty, |active| &active.content);
    let mut evidence = options.gate.check(new_probes(old, &content)).await;
    if let Some(failed) = evidence.iter().find(|one| !one.passed) {
        let reason = format!("{}: {}", failed.subject, failed.detail);
        way.step(State::Validating, State::Failed, Some(&reason), &evidence).await?;
        return Ok(report(Ended::FailedValidation, Some(reason), evidence));
    }
    way.step(State::Validating, State::Validated, None, &evidence).await?;
    crash::point("validated");

    let prepared = options.broadcaster.prepare(target).await?;
    let seen = prepared.iter().map(|one| router_evidence(one, "prepared")).collect::<Vec<_>>();
    evidence.extend(seen.iter().cloned());
    if let Some(reason) = refusals(&prepared) {
        options.broadcaster.abandon().await?;
        way.step(State::Validated, State::Failed, Some(&reason), &seen).await?;
        return Ok(report(Ended::FailedRefused, Some(reason), evidence));
    }
    crash::point("prepared");
    way.step(State::Validated, State::Activating, None, &seen).await?;
    crash::point("activating");

    let activated = options.broadcaster.activate().await?;
    crash::point("activated");
    let seen = activated.iter().map(|one| router_evidence(one, "activated")).collect::<Vec<_>>();
    evidence.extend(seen.iter().cloned());
    way.step(State::Activating, State::Active, None, &seen).await?;
    let record = options.registry.version(version).await?;
    deployer.0.active.send_replace(Some(Arc::new(ActiveVersion { record, content, snapshot })));
    tracing::info!(version, "active");
    Ok(report(Ended::Active, None, evidence))
}

struct Way<'a> {
    deployer: &'a Deployer,
    version: u64,
}

impl Way<'_> {
    /// Builds and signs the Snapshot, stores it, and opens it as a router does.
    async fn sign(
        &self,
        definition: switchboard_shared::definition::Definition,
    ) -> Result<(Target, Snapshot), DeployError> {
        let options = &self.deployer.0.options;
        let version = SnapshotVersion::new(self.version).ok_or(DeployError::Interrupted)?;
        let (key, trusted) = (options.key.clone(), self.deployer.0.trusted.clone());
        let (group, now_ms) = (options.group.clone(), clock::unix_ms());
        let built = blocking(move || {
            let file = build(&definition, version, now_ms, &key)?;
            let snapshot = Snapshot::open(&file, &trusted, Expectations::of_group(&group));
            Ok::<_, DeployError>((file, snapshot))
        });
        let (file, snapshot) = match built.await? {
            Ok((file, Ok(snapshot))) => (file, snapshot),
            Ok((_, Err(error))) => return self.unbuildable(error.detail()).await,
            Err(error) => return self.unbuildable(error.to_string()).await,
        };
        let signed = Signed { digest: snapshot.digest(), file: &file };
        options.registry.begin_validation(self.version, signed, clock::unix_ms()).await?;
        Ok((Target { id: snapshot.id(), file: file.into() }, snapshot))
    }

    /// The Definition was checked before, so this is ours; the version ends here all the same.
    async fn unbuildable<T>(&self, reason: String) -> Result<T, DeployError> {
        self.step(State::Assigned, State::Failed, Some(&reason), &[]).await?;
        tracing::error!(version = self.version, reason, "cannot build what was checked");
        Err(DeployError::Interrupted)
    }

    async fn step(
        &self,
        from: State,
        next: State,
        reason: Option<&str>,
        evidence: &[Evidence],
    ) -> Result<(), DeployError> {
        let registry = self.deployer.registry();
        registry.step(self.version, (from, next), reason, evidence, clock::unix_ms()).await?;
        if next == State::Failed {
            tracing::warn!(version = self.version, reason, "failed");
        }
        Ok(())
    }
}

fn router_evidence(participant: &Participant, done: &str) -> Evidence {
    let (passed, detail) = match &participant.outcome {
        Outcome::Done { slowest_swap_us: Some(swap) } => {
            (true, format!("{done}, slowest core after {swap} µs"))
        }
        Outcome::Done { slowest_swap_us: None } => (true, done.to_owned()),
        Outcome::Refused { reason, detail } => (false, format!("refused: {reason}: {detail}")),
        Outcome::Lost { why } => (false, format!("lost: {why}")),
    };
    let subject = format!("router {}", participant.router);
    Evidence { at_ms: clock::unix_ms(), subject, passed, detail }
}

/// Why nobody activates: one router that looked at it and refused is enough. One that is away
/// gets it when it comes back.
fn refusals(participants: &[Participant]) -> Option<String> {
    let refused: Vec<String> = participants
        .iter()
        .filter_map(|one| match &one.outcome {
            Outcome::Refused { reason, detail } => {
                Some(format!("router {} refused: {reason}: {detail}", one.router))
            }
            Outcome::Done { .. } | Outcome::Lost { .. } => None,
        })
        .collect();
    (!refused.is_empty()).then(|| refused.join("; "))
}
