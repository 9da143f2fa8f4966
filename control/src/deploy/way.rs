//! One change's way: Assign → Validate → Activate, each step persisted before the next begins.

use std::sync::Arc;

use switchboard_shared::{
    definition::Definition,
    snapshot::{Expectations, Snapshot, SnapshotVersion, build},
};
use tokio::sync::oneshot;

use super::{ActiveVersion, DeployError, Deployer, Ended, Report, bake, blocking};
use crate::{
    broadcaster::{Outcome, Participant, Target},
    clock, crash,
    lifecycle::{AfterCrash, State},
    plan::Plan,
    registry::{Action, Assignment, Content, Evidence, Signed, VersionRecord},
    rules::{Conditions, Draft},
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
    let Change { action, restores, actor, draft, plan } = change;
    if plan.is_empty() {
        let version = deployer.active().map(|active| active.record.version);
        let evidence = Vec::new();
        return Ok(Report { ended: Ended::Unchanged, version, reason: None, plan, evidence });
    }
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
    let way = Way { deployer, version, plan };
    // Whoever waits for the end does not listen here.
    drop(assigned.0.send(way.report(Ended::Pending, None, Vec::new())));
    crash::point("assigned");

    let ended = way.take(content, draft.conditions, draft.definition).await;
    match &ended {
        // What a rollback restores was good before; watching it too could take versions back in a circle.
        Ok(Report { ended: Ended::Active, .. })
            if action == Action::Apply && !options.bake.span.is_zero() =>
        {
            tokio::spawn(bake::watch(deployer.clone(), version, options.bake));
        }
        Ok(_) => {}
        Err(error) => way.give_up(error).await,
    }
    ended
}

struct Way<'a> {
    deployer: &'a Deployer,
    version: u64,
    plan: Plan,
}

impl Way<'_> {
    /// From `Assigned` to an end.
    async fn take(
        &self,
        content: Content,
        conditions: Conditions,
        definition: Definition,
    ) -> Result<Report, DeployError> {
        let options = &self.deployer.0.options;
        let (target, snapshot) = self.sign(definition).await?;
        crash::point("validating");

        let before = self.deployer.active();
        let empty = Content::default();
        let before = before.as_ref().map_or(&empty, |active| &active.content);
        let mut evidence = options.gate.pass(before, &content).await;
        if let Some(failed) = evidence.iter().find(|one| !one.passed) {
            let reason = format!("{}: {}", failed.subject, failed.detail);
            self.step(State::Validating, State::Failed, Some(&reason), &evidence).await?;
            return Ok(self.report(Ended::FailedValidation, Some(reason), evidence));
        }
        self.step(State::Validating, State::Validated, None, &evidence).await?;
        crash::point("validated");

        let prepared = options.broadcaster.prepare(target).await?;
        let seen: Vec<_> = prepared.iter().map(|one| router_evidence(one, "prepared")).collect();
        evidence.extend(seen.iter().cloned());
        if let Some(reason) = refusals(&prepared) {
            options.broadcaster.abandon().await?;
            self.step(State::Validated, State::Failed, Some(&reason), &seen).await?;
            return Ok(self.report(Ended::FailedRefused, Some(reason), evidence));
        }
        crash::point("prepared");
        self.step(State::Validated, State::Activating, None, &seen).await?;
        crash::point("activating");

        let record = options.registry.version(self.version).await?;
        let activated = options.broadcaster.activate().await?;
        crash::point("activated");
        // It runs: whatever the disk says below, the next change starts from here.
        let record = VersionRecord { state: State::Active, ..record };
        let active = ActiveVersion { record, content, conditions, snapshot };
        self.deployer.0.active.send_replace(Some(Arc::new(active)));
        let seen: Vec<_> = activated.iter().map(|one| router_evidence(one, "activated")).collect();
        evidence.extend(seen.iter().cloned());
        self.step(State::Activating, State::Active, None, &seen).await?;
        tracing::info!(version = self.version, "active");
        Ok(self.report(Ended::Active, None, evidence))
    }

    fn report(&self, ended: Ended, reason: Option<String>, evidence: Vec<Evidence>) -> Report {
        let (version, plan) = (Some(self.version), self.plan.clone());
        Report { ended, version, reason, plan, evidence }
    }

    /// The registry or we ourselves broke on the way. What is not decided yet ends as failed, if the
    /// registry still takes that; else the next start does it.
    async fn give_up(&self, error: &DeployError) {
        let registry = self.deployer.registry();
        let Ok(record) = registry.version(self.version).await else { return };
        if record.state.after_crash() != AfterCrash::Fail {
            return;
        }
        let reason = format!("interrupted: {error}");
        let failed = self.step(record.state, State::Failed, Some(&reason), &[]).await;
        let abandoned = self.deployer.broadcaster().abandon().await;
        if failed.is_err() || abandoned.is_err() {
            tracing::error!(
                version = self.version,
                reason,
                "cannot be ended before the next start"
            );
        }
    }

    /// Builds and signs the Snapshot, stores it, and opens it as a router does.
    async fn sign(&self, definition: Definition) -> Result<(Target, Snapshot), DeployError> {
        let options = &self.deployer.0.options;
        let version = SnapshotVersion::new(self.version).ok_or(DeployError::Interrupted)?;
        let (key, trusted) = (options.key.clone(), self.deployer.0.trusted.clone());
        let (group, now_ms) = (options.group.clone(), clock::unix_ms());
        let built = blocking(move || {
            let file = build(&definition, version, now_ms, &key)?;
            let snapshot = Snapshot::open(&file, &trusted, Expectations::of_group(&group))?;
            Ok::<_, DeployError>((file, snapshot))
        });
        let (file, snapshot) = built.await??;
        let signed = Signed { digest: snapshot.digest(), file: &file };
        options.registry.begin_validation(self.version, signed, clock::unix_ms()).await?;
        Ok((Target { id: snapshot.id(), file: file.into() }, snapshot))
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
    let seen = match &participant.outcome {
        Outcome::Done { slowest_swap_us: Some(swap) } => {
            Ok(format!("{done}, slowest core after {swap} µs"))
        }
        Outcome::Done { slowest_swap_us: None } => Ok(done.to_owned()),
        Outcome::Refused { reason, detail } => Err(format!("refused: {reason}: {detail}")),
        Outcome::Lost { why } => Err(format!("lost: {why}")),
    };
    Evidence::now(format!("router {}", participant.router), seen)
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
