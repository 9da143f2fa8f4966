//! Versions: reserved, stepped through their states, read back.

use serde::{Deserialize, Serialize};
use sqlx::{FromRow, Sqlite, Transaction};
use switchboard_shared::snapshot::Digest;
use utoipa::ToSchema;

use super::{
    Registry, RegistryError, SNAPSHOTS_KEPT,
    content::{store_placement, store_selection},
    record::{Audit, Evidence, audit, store_evidence},
    stored, while_doing,
};
use crate::{
    lifecycle::State,
    rules::{Allocations, RuleSet},
};

/// What a version says: its objects, and who owns which Slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// The objects.
    pub set: RuleSet,
    /// Who owns which Slots.
    pub allocations: Allocations,
}

/// What brought a version about.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Rule files.
    Apply,
    /// An older version's content.
    Rollback,
}

impl Action {
    const fn word(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Rollback => "rollback",
        }
    }
}

/// A new version, before it has a number.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// What brought it about.
    pub action: Action,
    /// The version whose content it has, if it is a rollback.
    pub restores: Option<u64>,
    /// Who asked for it.
    pub actor: &'a str,
    /// What it says.
    pub content: &'a Content,
    /// No number below this one is given.
    pub version_min: u64,
    /// The wall clock, in unix milliseconds.
    pub now_ms: u64,
}

/// A built and signed Snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// Of its payload.
    pub digest: Digest,
    /// The whole file.
    pub file: &'a [u8],
}

/// A version and what came of it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct VersionRecord {
    /// Its number.
    pub version: u64,
    /// What brought it about.
    pub action: Action,
    /// The version whose content it has, if it is a rollback.
    pub restores: Option<u64>,
    /// Who asked for it.
    pub actor: String,
    /// Number of what decides.
    pub selection: u64,
    /// Number of what answers.
    pub placement: u64,
    /// Where it is.
    pub state: State,
    /// Why it failed, or what replaced it.
    pub reason: Option<String>,
    /// BLAKE3 of the Snapshot's payload, in hexadecimal, once it is built.
    pub digest: Option<String>,
    /// When it was assigned, in unix milliseconds.
    pub created_ms: u64,
    /// When its state changed last, in unix milliseconds.
    pub updated_ms: u64,
}

#[derive(FromRow)]
struct VersionRow {
    version: i64,
    action: String,
    restores: Option<i64>,
    actor: String,
    selection: i64,
    placement: i64,
    state: String,
    reason: Option<String>,
    digest: Option<Vec<u8>>,
    created_ms: i64,
    updated_ms: i64,
}

const COLUMNS: &str = "version, action, restores, actor, selection, placement, state, reason,
    digest, created_ms, updated_ms";

impl TryFrom<VersionRow> for VersionRecord {
    type Error = RegistryError;

    fn try_from(row: VersionRow) -> Result<Self, RegistryError> {
        let damaged = || RegistryError::Damaged { what: "a version" };
        Ok(Self {
            version: row.version.unsigned_abs(),
            action: match row.action.as_str() {
                "apply" => Action::Apply,
                "rollback" => Action::Rollback,
                _ => return Err(damaged()),
            },
            restores: row.restores.map(i64::unsigned_abs),
            actor: row.actor,
            selection: row.selection.unsigned_abs(),
            placement: row.placement.unsigned_abs(),
            state: State::of_word(&row.state).ok_or_else(damaged)?,
            reason: row.reason,
            digest: match row.digest {
                Some(bytes) => Some(digest(&bytes).ok_or_else(damaged)?.to_string()),
                None => None,
            },
            created_ms: row.created_ms.unsigned_abs(),
            updated_ms: row.updated_ms.unsigned_abs(),
        })
    }
}

fn digest(bytes: &[u8]) -> Option<Digest> {
    bytes.try_into().ok().map(Digest)
}

impl Registry {
    /// Reserves the next number and stores what it says: `Assigned`.
    ///
    /// # Errors
    /// `Sql`; `Exhausted` after 2⁶³ − 1. Then nothing is stored.
    pub async fn assign(&self, assignment: &Assignment<'_>) -> Result<u64, RegistryError> {
        let now_ms = assignment.now_ms;
        let mut transaction = self.begin_write().await?;
        let selection = store_selection(&mut transaction, assignment.content, now_ms).await?;
        let placement = store_placement(&mut transaction, assignment.content, now_ms).await?;
        // AUTOINCREMENT's own memory outlives deleted rows, and so do we.
        let last: i64 = sqlx::query_scalar(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'version'",
        )
        .fetch_one(&mut *transaction)
        .await
        .map_err(while_doing("reserve a version"))?;
        let last = last.max(stored(assignment.version_min.saturating_sub(1)));
        let version =
            last.checked_add(1).ok_or(RegistryError::Exhausted { version: last.unsigned_abs() })?;
        sqlx::query(
            "INSERT INTO version (version, action, restores, actor, selection, placement, state,
                 created_ms, updated_ms) VALUES (?, ?, ?, ?, ?, ?, 'Assigned', ?, ?)",
        )
        .bind(version)
        .bind(assignment.action.word())
        .bind(assignment.restores.map(stored))
        .bind(assignment.actor)
        .bind(selection)
        .bind(placement)
        .bind(stored(now_ms))
        .bind(stored(now_ms))
        .execute(&mut *transaction)
        .await
        .map_err(while_doing("reserve a version"))?;
        let detail = assignment.restores.map(|restores| format!("restores version {restores}"));
        let entry = Audit {
            at_ms: now_ms,
            actor: assignment.actor,
            action: assignment.action.word(),
            version,
            detail: detail.as_deref().unwrap_or_default(),
        };
        audit(&mut transaction, &entry).await?;
        transaction.commit().await.map_err(while_doing("commit a version"))?;
        Ok(version.unsigned_abs())
    }

    /// Stores the signed Snapshot of an assigned version: `Validating`.
    ///
    /// # Errors
    /// `NotInState`, `Sql`. Then nothing has changed.
    pub async fn begin_validation(
        &self,
        version: u64,
        signed: Signed<'_>,
        now_ms: u64,
    ) -> Result<(), RegistryError> {
        let mut transaction = self.begin_write().await?;
        sqlx::query("UPDATE version SET digest = ?, snapshot = ? WHERE version = ?")
            .bind(signed.digest.0.as_slice())
            .bind(signed.file)
            .bind(stored(version))
            .execute(&mut *transaction)
            .await
            .map_err(while_doing("store a Snapshot"))?;
        let (from, next) = (State::Assigned, State::Validating);
        let step = Step { version, by: version, from, next, now_ms };
        take_step(&mut transaction, step, None).await?;
        transaction.commit().await.map_err(while_doing("commit a Snapshot"))
    }

    /// Takes a version one state further, with what was seen on the way.
    ///
    /// # Errors
    /// `NotInState`, `Sql`. Then nothing has changed.
    pub async fn step(
        &self,
        version: u64,
        (from, next): (State, State),
        reason: Option<&str>,
        evidence: &[Evidence],
        now_ms: u64,
    ) -> Result<(), RegistryError> {
        let mut transaction = self.begin_write().await?;
        store_evidence(&mut transaction, stored(version), evidence).await?;
        let step = Step { version, by: version, from, next, now_ms };
        take_step(&mut transaction, step, reason).await?;
        match next {
            State::Active => supersede(&mut transaction, version, now_ms).await?,
            State::Failed => forget_snapshot(&mut transaction, version).await?,
            _ => {}
        }
        transaction.commit().await.map_err(while_doing("commit a step"))
    }

    /// Adds evidence that came after a version's way had ended.
    ///
    /// # Errors
    /// `Sql`.
    pub async fn add_evidence(
        &self,
        version: u64,
        evidence: &[Evidence],
    ) -> Result<(), RegistryError> {
        let mut transaction = self.begin_write().await?;
        store_evidence(&mut transaction, stored(version), evidence).await?;
        transaction.commit().await.map_err(while_doing("commit evidence"))
    }

    /// The version that routers are to evaluate, if there is one.
    ///
    /// # Errors
    /// `Sql`, `Damaged`.
    pub async fn active(&self) -> Result<Option<VersionRecord>, RegistryError> {
        self.one("state = 'Active' ORDER BY version DESC LIMIT 1", None).await
    }

    /// The newest version before `active` that was active too and says something else.
    ///
    /// # Errors
    /// `Sql`, `Damaged`.
    pub async fn previous(
        &self,
        active: &VersionRecord,
    ) -> Result<Option<VersionRecord>, RegistryError> {
        let query = sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM version WHERE state = 'Active' AND version < ?
             AND NOT (selection = ? AND placement = ?) ORDER BY version DESC LIMIT 1"
        ));
        let row: Option<VersionRow> = sqlx::query_as(query)
            .bind(stored(active.version))
            .bind(stored(active.selection))
            .bind(stored(active.placement))
            .fetch_optional(&self.pool)
            .await
            .map_err(while_doing("read a version"))?;
        row.map(VersionRecord::try_from).transpose()
    }

    /// One version.
    ///
    /// # Errors
    /// `NoVersion`, `Sql`, `Damaged`.
    pub async fn version(&self, version: u64) -> Result<VersionRecord, RegistryError> {
        let found = self.one("version = ?", Some(version)).await?;
        found.ok_or(RegistryError::NoVersion { version })
    }

    async fn one(
        &self,
        condition: &str,
        version: Option<u64>,
    ) -> Result<Option<VersionRecord>, RegistryError> {
        // Only the constant texts of this file come here.
        let query = sqlx::AssertSqlSafe(format!("SELECT {COLUMNS} FROM version WHERE {condition}"));
        let mut query = sqlx::query_as::<_, VersionRow>(query);
        if let Some(version) = version {
            query = query.bind(stored(version));
        }
        let row = query.fetch_optional(&self.pool).await.map_err(while_doing("read a version"))?;
        row.map(VersionRecord::try_from).transpose()
    }

    /// The newest versions, newest first.
    ///
    /// # Errors
    /// `Sql`, `Damaged`.
    pub async fn versions(&self, count_max: u32) -> Result<Vec<VersionRecord>, RegistryError> {
        let query = sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM version ORDER BY version DESC LIMIT ?"
        ));
        let rows: Vec<VersionRow> = sqlx::query_as(query)
            .bind(count_max)
            .fetch_all(&self.pool)
            .await
            .map_err(while_doing("list versions"))?;
        rows.into_iter().map(VersionRecord::try_from).collect()
    }

    /// Versions whose way has not ended, oldest first.
    ///
    /// # Errors
    /// `Sql`, `Damaged`.
    pub async fn unfinished(&self) -> Result<Vec<VersionRecord>, RegistryError> {
        let query = sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM version
             WHERE state NOT IN ('Active', 'Failed', 'RolledBack') ORDER BY version"
        ));
        let rows: Vec<VersionRow> = sqlx::query_as(query)
            .fetch_all(&self.pool)
            .await
            .map_err(while_doing("list unfinished versions"))?;
        rows.into_iter().map(VersionRecord::try_from).collect()
    }

    /// What a version says.
    ///
    /// # Errors
    /// `Sql`, `Damaged`.
    pub async fn content_of(&self, record: &VersionRecord) -> Result<Content, RegistryError> {
        self.content(stored(record.selection), stored(record.placement)).await
    }

    /// The signed Snapshot of a version, while it is kept.
    ///
    /// # Errors
    /// `Sql`.
    pub async fn snapshot(&self, version: u64) -> Result<Option<Vec<u8>>, RegistryError> {
        let row: Option<Option<Vec<u8>>> =
            sqlx::query_scalar("SELECT snapshot FROM version WHERE version = ?")
                .bind(stored(version))
                .fetch_optional(&self.pool)
                .await
                .map_err(while_doing("read a Snapshot"))?;
        Ok(row.flatten())
    }

    /// Tokens of `set` that an earlier version gave up: they are never reused.
    ///
    /// # Errors
    /// `Sql`.
    pub async fn retired_tokens(&self, set: &RuleSet) -> Result<Vec<(String, u64)>, RegistryError> {
        let retired: Vec<(String, i64)> = sqlx::query_as(
            "SELECT token, retired_in FROM objective_token WHERE retired_in IS NOT NULL",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(while_doing("read the tokens"))?;
        let reused = retired.into_iter().filter(|(token, _)| set.objectives.contains_key(token));
        Ok(reused.map(|(token, version)| (token, version.unsigned_abs())).collect())
    }
}

#[derive(Clone, Copy)]
struct Step {
    version: u64,
    /// The version whose way this is a part of: its own, but for a version that is rolled back.
    by: u64,
    from: State,
    next: State,
    now_ms: u64,
}

async fn take_step(
    transaction: &mut Transaction<'static, Sqlite>,
    step: Step,
    reason: Option<&str>,
) -> Result<(), RegistryError> {
    let Step { version, by, from, next, now_ms } = step;
    debug_assert!(from.may_become(next), "{from} -> {next}");
    let actor: Option<String> = sqlx::query_scalar(
        "UPDATE version SET state = ?, reason = coalesce(?, reason), updated_ms = ?
         WHERE version = ? AND state = ?
         RETURNING (SELECT actor FROM version AS cause WHERE cause.version = ?)",
    )
    .bind(next.word())
    .bind(reason)
    .bind(stored(now_ms))
    .bind(stored(version))
    .bind(from.word())
    .bind(stored(by))
    .fetch_optional(&mut **transaction)
    .await
    .map_err(while_doing("take a step"))?;
    let actor = actor.ok_or(RegistryError::NotInState { version, from, next })?;
    let entry = Audit {
        at_ms: now_ms,
        actor: &actor,
        action: next.word(),
        version: stored(version),
        detail: reason.unwrap_or_default(),
    };
    audit(transaction, &entry).await
}

/// A version that failed is never pushed again, so its file would only take room.
async fn forget_snapshot(
    transaction: &mut Transaction<'static, Sqlite>,
    version: u64,
) -> Result<(), RegistryError> {
    sqlx::query("UPDATE version SET snapshot = NULL WHERE version = ?")
        .bind(stored(version))
        .execute(&mut **transaction)
        .await
        .map_err(while_doing("forget a Snapshot"))?;
    Ok(())
}

/// What a newly active version does to the others, in its own transaction.
async fn supersede(
    transaction: &mut Transaction<'static, Sqlite>,
    version: u64,
    now_ms: u64,
) -> Result<(), RegistryError> {
    let doing = "supersede a version";
    let before: Option<(i64, String)> = sqlx::query_as(
        "SELECT before.version, now.action FROM version AS before, version AS now
         WHERE before.state = 'Active' AND before.version < ? AND now.version = ?
         ORDER BY before.version DESC LIMIT 1",
    )
    .bind(stored(version))
    .bind(stored(version))
    .fetch_optional(&mut **transaction)
    .await
    .map_err(while_doing(doing))?;
    if let Some((before, action)) = before
        && action == Action::Rollback.word()
    {
        let (from, next) = (State::Active, State::RolledBack);
        let step = Step { version: before.unsigned_abs(), by: version, from, next, now_ms };
        take_step(transaction, step, Some(&format!("replaced by version {version}"))).await?;
    }
    for query in [
        // What this version has is in use, and what it no longer has is retired by it.
        "INSERT INTO objective_token (token, retired_in)
         SELECT object.name, NULL FROM object
         JOIN selection_object ON selection_object.object = object.digest
         JOIN version ON version.selection = selection_object.selection
         WHERE version.version = ? AND object.kind = 'Objective'
         ON CONFLICT (token) DO UPDATE SET retired_in = NULL",
        "UPDATE objective_token SET retired_in = ?1 WHERE retired_in IS NULL AND token NOT IN
         (SELECT object.name FROM object
          JOIN selection_object ON selection_object.object = object.digest
          JOIN version ON version.selection = selection_object.selection
          WHERE version.version = ?1 AND object.kind = 'Objective')",
    ] {
        sqlx::query(query)
            .bind(stored(version))
            .execute(&mut **transaction)
            .await
            .map_err(while_doing(doing))?;
    }
    sqlx::query("UPDATE version SET snapshot = NULL WHERE snapshot IS NOT NULL AND version <= ?")
        .bind(stored(version).saturating_sub(SNAPSHOTS_KEPT))
        .execute(&mut **transaction)
        .await
        .map_err(while_doing(doing))?;
    Ok(())
}
