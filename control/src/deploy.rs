//! Takes changes from rule files to routers, one at a time, and tells what came of each.
//!
//! A change is planned against the version that is active when its turn comes, so concurrent
//! callers are served in order and none works on stale content. Its way is a task of its own: a
//! caller that hangs up does not stop it half-way.

mod bake;
mod explain;
mod recover;
mod report;
mod way;

use std::sync::Arc;

use switchboard_shared::snapshot::{
    BuildError, KeyError, SecretKey, Snapshot, SnapshotError, TrustedKeys,
};
use tokio::sync::{Mutex, Semaphore, watch};

pub use self::{
    bake::BakeLimits,
    explain::{ExplainError, Question},
    report::{Ended, Report, Status},
};
use crate::{
    broadcaster::{Broadcaster, Stopped},
    gate::Gate,
    plan::Plan,
    registry::{Action, Content, Registry, RegistryError, VersionRecord},
    rules::{
        Conditions, Draft, FaultKind, Object, Place, RuleFault, RuleFile, Unmentioned, WriteError,
        read, write,
    },
};

/// Changes that wait for their turn; more are told to come back.
const WAITING_MAX: usize = 16;

/// What a deployer works with.
#[derive(Debug)]
pub struct DeployOptions {
    /// Where versions are kept.
    pub registry: Registry,
    /// Signs Snapshots.
    pub key: SecretKey,
    /// The routers' group.
    pub group: String,
    /// What must hold before a version may leave.
    pub gate: Gate,
    /// The way to the routers.
    pub broadcaster: Broadcaster,
    /// What an Arm may not exceed after an activation.
    pub bake: BakeLimits,
    /// No version below this is given: for a registry that was lost while routers ran on.
    pub version_min: u64,
}

/// Why a change, or a question about one, was not taken.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The rules are at fault; nothing is stored.
    #[error("{} fault{} in the rules", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Rules(Vec<RuleFault>),
    /// Too many changes wait already.
    #[error("{WAITING_MAX} changes wait already")]
    Busy,
    /// Nothing was ever active.
    #[error("no version is active yet")]
    NothingActive,
    /// There is nothing to go back to.
    #[error("no version before {active} was active with other content; name one to restore")]
    NothingBefore {
        /// The active one.
        active: u64,
    },
    /// Something else became active meanwhile.
    #[error("version {version} is no longer active")]
    NoLongerActive {
        /// Which one was.
        version: u64,
    },
    /// It never passed validation.
    #[error("version {version} was never active: it is {state}")]
    NeverActive {
        /// Which one.
        version: u64,
        /// Where it ended.
        state: crate::lifecycle::State,
    },
    /// The registry failed.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A Definition that was checked could not be built.
    #[error("cannot build the Snapshot")]
    Build(#[from] BuildError),
    /// What was built cannot be opened: ours to mend.
    #[error("cannot open the Snapshot that was built")]
    Open(#[from] SnapshotError),
    /// A signing key that cannot be trusted.
    #[error("cannot use the signing key")]
    Key(#[from] KeyError),
    /// Objects that cannot be written.
    #[error("cannot export")]
    Export(#[from] WriteError),
    /// The program is stopping, or a task of it broke.
    #[error("the change was interrupted")]
    Interrupted,
}

impl From<Stopped> for DeployError {
    fn from(_: Stopped) -> Self {
        Self::Interrupted
    }
}

/// The version that routers are to evaluate.
#[derive(Debug)]
pub struct ActiveVersion {
    /// Its place in the registry.
    pub record: VersionRecord,
    /// What it says.
    pub content: Content,
    /// Its compiled conditions, as far as this process has needed them: none after a start.
    pub conditions: Conditions,
    /// What routers evaluate, opened as they open it.
    pub snapshot: Snapshot,
}

/// Takes changes to routers. Handles share one deployer.
#[derive(Clone, Debug)]
pub struct Deployer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: DeployOptions,
    trusted: TrustedKeys,
    /// Held by the change whose turn it is.
    turn: Mutex<()>,
    waiting: Semaphore,
    active: watch::Sender<Option<Arc<ActiveVersion>>>,
}

/// Whether a caller waits for a change's end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wait {
    /// Until it is active or has failed.
    ForEnd,
    /// Until it has a version.
    ForVersion,
}

/// When a rollback's turn has come.
#[derive(Clone, Copy, Debug)]
enum Only {
    /// Whatever is active.
    Always,
    /// Unless another version became active meanwhile.
    IfActive(u64),
}

impl Deployer {
    /// Ends what a crash left unfinished, and has routers run what is active.
    ///
    /// # Errors
    /// `Registry`, `Key`, `Build`, `Rules` where a stored version is no longer taken.
    pub async fn start(options: DeployOptions) -> Result<Self, DeployError> {
        let trusted = TrustedKeys::new([options.key.public()])?;
        let (active, _) = watch::channel(None);
        let (turn, waiting) = (Mutex::new(()), Semaphore::new(WAITING_MAX));
        let deployer = Self(Arc::new(Inner { options, trusted, turn, waiting, active }));
        recover::recover(&deployer).await?;
        Ok(deployer)
    }

    /// The version that routers are to evaluate.
    #[must_use]
    pub fn active(&self) -> Option<Arc<ActiveVersion>> {
        self.0.active.borrow().clone()
    }

    /// Where versions are kept.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.options.registry
    }

    /// The way to the routers.
    #[must_use]
    pub fn broadcaster(&self) -> &Broadcaster {
        &self.0.options.broadcaster
    }

    /// The routers' group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.0.options.group
    }

    /// What a change would do, against what is active now.
    ///
    /// # Errors
    /// `Rules`, `Registry`.
    pub async fn plan(
        &self,
        files: Vec<RuleFile>,
        unmentioned: Unmentioned,
    ) -> Result<Plan, DeployError> {
        self.draft(files, unmentioned).await.map(|(_, plan)| plan)
    }

    /// Takes a change as far as it goes.
    ///
    /// # Errors
    /// Those that leave nothing behind: `Rules`, `Busy`; and `Registry`, `Build`, `Interrupted`. A
    /// version that failed on its way is a [`Report`].
    pub async fn apply(
        &self,
        files: Vec<RuleFile>,
        unmentioned: Unmentioned,
        actor: String,
        wait: Wait,
    ) -> Result<Report, DeployError> {
        let deployer = self.clone();
        self.in_turn(wait, move |assigned| async move {
            let (draft, plan) = deployer.draft(files, unmentioned).await?;
            let change = way::Change { action: Action::Apply, restores: None, actor, draft, plan };
            way::go(&deployer, change, assigned).await
        })
        .await
    }

    /// Makes an older version's content a new version; without a number, that of the version which
    /// was active before with other content.
    ///
    /// # Errors
    /// `NothingActive`, `NothingBefore`, `NeverActive`, and those of [`Deployer::apply`].
    pub async fn rollback(
        &self,
        version: Option<u64>,
        actor: String,
        wait: Wait,
    ) -> Result<Report, DeployError> {
        self.roll_back(version, Only::Always, actor, wait).await
    }

    async fn roll_back(
        &self,
        version: Option<u64>,
        only: Only,
        actor: String,
        wait: Wait,
    ) -> Result<Report, DeployError> {
        let deployer = self.clone();
        self.in_turn(wait, move |assigned| async move {
            if let Only::IfActive(version) = only
                && deployer.active().is_none_or(|active| active.record.version != version)
            {
                return Err(DeployError::NoLongerActive { version });
            }
            let change = deployer.restoring(version, actor).await?;
            way::go(&deployer, change, assigned).await
        })
        .await
    }

    /// The change that brings an older version's content back.
    async fn restoring(
        &self,
        version: Option<u64>,
        actor: String,
    ) -> Result<way::Change, DeployError> {
        let restored = self.restorable(version).await?;
        let content = self.registry().content_of(&restored).await?;
        let group = self.group().to_owned();
        let active = self.active().ok_or(DeployError::NothingActive)?;
        let draft = blocking(move || {
            let known = (&active.content.set, &active.conditions);
            Draft::of_stored(content.set, content.allocations, known, &group)
        });
        let draft = draft.await?.map_err(DeployError::Rules)?;
        let plan = self.plan_of(&draft);
        let (action, restores) = (Action::Rollback, Some(restored.version));
        Ok(way::Change { action, restores, actor, draft, plan })
    }

    /// A version as rule files that give the same version on an empty registry.
    ///
    /// # Errors
    /// `NothingActive`, `Registry`, `Export`.
    pub async fn export(&self, version: Option<u64>) -> Result<String, DeployError> {
        let content = match version {
            Some(version) => {
                let record = self.registry().version(version).await?;
                self.registry().content_of(&record).await?
            }
            None => self.active().ok_or(DeployError::NothingActive)?.content.clone(),
        };
        let allocations = content.allocations.documents(&content.set);
        let objects: Vec<Object> = content
            .set
            .selection()
            .chain(content.set.placement())
            .chain(allocations.into_iter().map(Object::Allocation))
            .collect();
        Ok(write(&objects)?)
    }

    /// Waits for the turn, then runs a change as a task of its own.
    async fn in_turn<Way>(
        &self,
        wait: Wait,
        change: impl FnOnce(way::Assigned) -> Way + Send + 'static,
    ) -> Result<Report, DeployError>
    where
        Way: Future<Output = Result<Report, DeployError>> + Send + 'static,
    {
        let deployer = self.clone();
        let (assigned, early) = way::Assigned::channel();
        let mut task = tokio::spawn(async move {
            let inner = &deployer.0;
            let place = inner.waiting.try_acquire().map_err(|_| DeployError::Busy)?;
            let _turn = inner.turn.lock().await;
            drop(place); // whoever has the turn waits no longer
            change(assigned).await
        });
        if wait == Wait::ForVersion {
            tokio::select! {
                Ok(report) = early => return Ok(report),
                ended = &mut task => return ended.map_err(|_| DeployError::Interrupted)?,
            }
        }
        task.await.map_err(|_| DeployError::Interrupted)?
    }

    async fn draft(
        &self,
        files: Vec<RuleFile>,
        unmentioned: Unmentioned,
    ) -> Result<(Draft, Plan), DeployError> {
        let (active, group) = (self.active(), self.group().to_owned());
        let draft = blocking(move || {
            let documents = read(&files)?;
            if documents.is_empty() && unmentioned == Unmentioned::Prune {
                return Err(vec![would_remove_everything()]);
            }
            let empty = Content::default();
            let base = active.as_ref().map_or(&empty, |active| &active.content);
            let nothing = Conditions::default();
            let known = active.as_ref().map_or(&nothing, |active| &active.conditions);
            let draft = Draft::of_change(
                &base.set,
                &base.allocations,
                known,
                &documents,
                unmentioned,
                &group,
            )?;
            Ok((draft, documents))
        });
        let (draft, documents) = draft.await?.map_err(DeployError::Rules)?;
        let retired = self.registry().retired_tokens(&draft.set).await?;
        let faults: Vec<_> = retired
            .into_iter()
            .map(|(token, version)| RuleFault {
                place: documents.place_of_token(&token),
                kind: FaultKind::Immutable,
                found: format!("the token `{token}`, which version {version} gave up"),
                expected: "another one: a token names one business goal for ever".to_owned(),
            })
            .collect();
        if !faults.is_empty() {
            return Err(DeployError::Rules(faults));
        }
        let plan = self.plan_of(&draft);
        Ok((draft, plan))
    }

    fn plan_of(&self, draft: &Draft) -> Plan {
        let after = Content { set: draft.set.clone(), allocations: draft.allocations.clone() };
        match self.active() {
            Some(active) => Plan::between(Some(active.record.version), &active.content, &after),
            None => Plan::between(None, &Content::default(), &after),
        }
    }

    async fn restorable(&self, version: Option<u64>) -> Result<VersionRecord, DeployError> {
        use crate::lifecycle::State;

        let active = self.active().ok_or(DeployError::NothingActive)?;
        let Some(version) = version else {
            let before = self.registry().previous(&active.record).await?;
            return before.ok_or(DeployError::NothingBefore { active: active.record.version });
        };
        let record = self.registry().version(version).await?;
        match record.state {
            State::Active | State::RolledBack => Ok(record),
            state @ (State::Assigned
            | State::Validating
            | State::Validated
            | State::Activating
            | State::Failed) => Err(DeployError::NeverActive { version, state }),
        }
    }
}

/// An empty folder, a wrong path: never what `--prune` was meant for.
fn would_remove_everything() -> RuleFault {
    RuleFault {
        place: Place { file: "rules".to_owned(), line: 0, column: 0 },
        kind: FaultKind::Value,
        found: "no object at all".to_owned(),
        expected: "at least one: pruning would remove everything".to_owned(),
    }
}

/// Runs what takes its time away from the tasks that answer others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, DeployError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| DeployError::Interrupted)
}
