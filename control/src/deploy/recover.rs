//! After a start: ends what a crash left unfinished, and has routers run what is active.

use std::sync::Arc;

use switchboard_shared::snapshot::{
    Digest, Expectations, Snapshot, SnapshotId, SnapshotVersion, build,
};

use super::{ActiveVersion, DeployError, Deployer, blocking};
use crate::{
    broadcaster::Target,
    clock,
    lifecycle::{AfterCrash, State},
    registry::{RegistryError, VersionRecord},
    rules::{Conditions, Draft, RuleSet},
};

pub(super) async fn recover(deployer: &Deployer) -> Result<(), DeployError> {
    let registry = deployer.registry();
    for record in registry.unfinished().await? {
        let version = record.version;
        match record.state.after_crash() {
            AfterCrash::Fail => {
                let reason = format!("the control plane stopped while it was {}", record.state);
                let step = (record.state, State::Failed);
                registry.step(version, step, Some(&reason), &[], clock::unix_ms()).await?;
                tracing::warn!(version, reason, "failed");
            }
            AfterCrash::Finish => {
                let step = (record.state, State::Active);
                registry.step(version, step, None, &[], clock::unix_ms()).await?;
                tracing::warn!(version, "active: the decision was made before the crash");
            }
            AfterCrash::Leave => {}
        }
    }
    let Some(record) = registry.active().await? else { return Ok(()) };
    let file = registry.snapshot(record.version).await?;
    let file =
        file.ok_or(RegistryError::Damaged { what: "an active version without its Snapshot" })?;
    let content = registry.content_of(&record).await?;
    let snapshot = open(deployer, &record, &file).await?;
    let id = stored_id(&record).ok_or(RegistryError::Damaged { what: "a digest" })?;
    let target = Target { id, file: file.into() };
    deployer.0.active.send_replace(Some(Arc::new(ActiveVersion {
        record,
        content,
        conditions: Conditions::default(),
        snapshot,
    })));
    deployer.broadcaster().retarget(target).await?;
    Ok(())
}

fn stored_id(record: &VersionRecord) -> Option<SnapshotId> {
    let version = SnapshotVersion::new(record.version)?;
    let digest = blake3::Hash::from_hex(record.digest.as_ref()?).ok()?;
    Some(SnapshotId { version, digest: Digest(*digest.as_bytes()) })
}

/// Opens the stored file; where another key signed it or another group was meant, what it says is
/// built again for our own questions. Routers get it as it is stored, with a signature they know.
async fn open(
    deployer: &Deployer,
    record: &VersionRecord,
    file: &[u8],
) -> Result<Snapshot, DeployError> {
    let trusted = deployer.0.trusted.clone();
    let group = deployer.group().to_owned();
    if let Ok(snapshot) = Snapshot::open(file, &trusted, Expectations::of_group(&group)) {
        return Ok(snapshot);
    }
    tracing::warn!(
        version = record.version,
        "the stored Snapshot has another key, group or format"
    );
    let content = deployer.registry().content_of(record).await?;
    let key = deployer.0.options.key.clone();
    let (version, created_ms) = (record.version, record.created_ms);
    blocking(move || {
        let nothing = (&RuleSet::default(), &Conditions::default());
        let draft = Draft::of_stored(content.set, content.allocations, nothing, &group)
            .map_err(DeployError::Rules)?;
        let version = SnapshotVersion::new(version).ok_or(DeployError::Interrupted)?;
        let file = build(&draft.definition, version, created_ms, &key)?;
        Ok(Snapshot::open(&file, &trusted, Expectations::of_group(&group))?)
    })
    .await?
}
