//! What happened: the append-only audit log, and the evidence of a version's validation.

use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use utoipa::ToSchema;

use super::{Registry, RegistryError, stored, while_doing};
use crate::clock;

/// Something that was checked or seen on the way of a version.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct Evidence {
    /// When, in unix milliseconds.
    pub at_ms: u64,
    /// What it is about, such as `endpoint 127.0.0.1:9001` or `router host-a`.
    pub subject: String,
    /// Whether it was as it should be.
    pub passed: bool,
    /// What was seen.
    pub detail: String,
}

impl Evidence {
    /// What is seen now: as it should be, or what is wrong.
    #[must_use]
    pub fn now(subject: String, seen: Result<String, String>) -> Self {
        let passed = seen.is_ok();
        let (Ok(detail) | Err(detail)) = seen;
        Self { at_ms: clock::unix_ms(), subject, passed, detail }
    }
}

/// One line of the audit log.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
pub struct AuditEntry {
    /// Grows by one.
    pub sequence: u64,
    /// When, in unix milliseconds.
    pub at_ms: u64,
    /// Who, as the caller said.
    pub actor: String,
    /// What, such as `apply` or the name of a state.
    pub action: String,
    /// Of which version.
    pub version: u64,
    /// Digest of the content that was active before, in hexadecimal.
    pub before: Option<String>,
    /// Digest of this version's content, in hexadecimal.
    pub after: Option<String>,
    /// Why, where there is more to say.
    pub detail: String,
}

/// What an audit line says, before it has a number.
pub(super) struct Audit<'a> {
    pub(super) at_ms: u64,
    pub(super) actor: &'a str,
    pub(super) action: &'a str,
    pub(super) version: i64,
    pub(super) detail: &'a str,
}

/// Writes a line in the transaction of the change itself. The digests come from the tables.
pub(super) async fn audit(
    connection: &mut SqliteConnection,
    entry: &Audit<'_>,
) -> Result<(), RegistryError> {
    sqlx::query(
        "INSERT INTO audit (at_ms, actor, action, version, before_digest, after_digest, detail)
         VALUES (?, ?, ?, ?,
             (SELECT digest FROM version WHERE state IN ('Active', 'RolledBack') AND version < ?
              ORDER BY version DESC LIMIT 1),
             (SELECT digest FROM version WHERE version = ?), ?)",
    )
    .bind(stored(entry.at_ms))
    .bind(entry.actor)
    .bind(entry.action)
    .bind(entry.version)
    .bind(entry.version)
    .bind(entry.version)
    .bind(entry.detail)
    .execute(connection)
    .await
    .map_err(while_doing("write the audit log"))?;
    Ok(())
}

/// Writes evidence in the transaction of the change itself.
pub(super) async fn store_evidence(
    connection: &mut SqliteConnection,
    version: i64,
    evidence: &[Evidence],
) -> Result<(), RegistryError> {
    for one in evidence {
        sqlx::query(
            "INSERT INTO evidence (version, at_ms, subject, passed, detail) VALUES (?, ?, ?, ?, ?)",
        )
        .bind(version)
        .bind(stored(one.at_ms))
        .bind(&one.subject)
        .bind(one.passed)
        .bind(&one.detail)
        .execute(&mut *connection)
        .await
        .map_err(while_doing("store evidence"))?;
    }
    Ok(())
}

impl Registry {
    /// The evidence of a version, in the order in which it came.
    ///
    /// # Errors
    /// `Sql`.
    pub async fn evidence(&self, version: u64) -> Result<Vec<Evidence>, RegistryError> {
        let rows: Vec<(i64, String, bool, String)> = sqlx::query_as(
            "SELECT at_ms, subject, passed, detail FROM evidence WHERE version = ? ORDER BY sequence",
        )
        .bind(stored(version))
        .fetch_all(&self.pool)
        .await
        .map_err(while_doing("read evidence"))?;
        let evidence = rows.into_iter().map(|(at_ms, subject, passed, detail)| Evidence {
            at_ms: at_ms.unsigned_abs(),
            subject,
            passed,
            detail,
        });
        Ok(evidence.collect())
    }

    /// The newest lines of the audit log, newest first.
    ///
    /// # Errors
    /// `Sql`.
    pub async fn audit(&self, count_max: u32) -> Result<Vec<AuditEntry>, RegistryError> {
        type Line = (i64, i64, String, String, i64, Option<Vec<u8>>, Option<Vec<u8>>, String);
        let rows: Vec<Line> = sqlx::query_as(
            "SELECT sequence, at_ms, actor, action, version, before_digest, after_digest, detail
             FROM audit ORDER BY sequence DESC LIMIT ?",
        )
        .bind(count_max)
        .fetch_all(&self.pool)
        .await
        .map_err(while_doing("read the audit log"))?;
        let entry =
            |(sequence, at_ms, actor, action, version, before, after, detail): Line| AuditEntry {
                sequence: sequence.unsigned_abs(),
                at_ms: at_ms.unsigned_abs(),
                actor,
                action,
                version: version.unsigned_abs(),
                before: before.map(hexadecimal),
                after: after.map(hexadecimal),
                detail,
            };
        Ok(rows.into_iter().map(entry).collect())
    }
}

fn hexadecimal(bytes: Vec<u8>) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
