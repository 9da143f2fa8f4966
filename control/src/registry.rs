//! The registry: what every version says, in SQLite. SQL is only here.
//!
//! A version joins a *selection* (what decides) and a *placement* (what answers, and where), each
//! with its own numbers: moving a Model to another Shard makes a new placement and leaves the
//! selection alone. Both are immutable and found again by digest, so that a rollback gives exactly
//! the Slots of then.

mod content;
mod record;
mod version;

use std::{path::Path, time::Duration};

use sqlx::{
    SqlSafeStr, Sqlite, SqlitePool, Transaction,
    migrate::{Migration, MigrationType, Migrator},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

pub use self::{
    record::{AuditEntry, Evidence},
    version::{Action, Assignment, Content, Signed, VersionRecord},
};
use crate::lifecycle::State;

/// Newest signed Snapshots that are kept; an older one can be built again from its content.
const SNAPSHOTS_KEPT: i64 = 32;
/// How long a statement waits for another process that writes, such as a backup.
const BUSY_MAX: Duration = Duration::from_secs(10);
/// Readers beside the one writer.
const CONNECTIONS_MAX: u32 = 4;

/// All versions and what came of them.
#[derive(Clone, Debug)]
pub struct Registry {
    pool: SqlitePool,
}

/// Why the registry could not do something.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The file cannot be opened, or is no registry of this build.
    #[error("cannot open the registry {path}")]
    Open {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// The tables cannot be brought to this build's form.
    #[error("cannot migrate the registry")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// A statement failed: disk full, file damaged, locked for too long.
    #[error("the registry cannot {doing}")]
    Sql {
        /// What it was doing.
        doing: &'static str,
        /// Why not.
        #[source]
        source: sqlx::Error,
    },
    /// A row says what this build cannot read.
    #[error("the registry holds {what} that this build cannot read")]
    Damaged {
        /// Which sort of row.
        what: &'static str,
    },
    /// The change is no longer where it was thought to be.
    #[error("version {version} cannot become {next}: it is not {from}")]
    NotInState {
        /// Which one.
        version: u64,
        /// Where it should have been.
        from: State,
        /// Where it should have gone.
        next: State,
    },
    /// No such version.
    #[error("there is no version {version}")]
    NoVersion {
        /// Which one.
        version: u64,
    },
    /// All numbers are used up.
    #[error("there is no version number after {version}")]
    Exhausted {
        /// The last one.
        version: u64,
    },
}

/// Names what a statement was doing where it fails.
fn while_doing(doing: &'static str) -> impl Fn(sqlx::Error) -> RegistryError {
    move |source| RegistryError::Sql { doing, source }
}

impl Registry {
    /// Opens the registry, makes it where there is none, and brings its tables up to date.
    ///
    /// # Errors
    /// `Open` and `Migrate`.
    pub async fn open(path: &Path) -> Result<Self, RegistryError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A version that was given away must not come back after a power cut.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_MAX);
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .connect_with(options)
            .await
            .map_err(|source| RegistryError::Open { path: path.display().to_string(), source })?;
        migrations().run(&pool).await.map_err(RegistryError::Migrate)?;
        Ok(Self { pool })
    }

    /// Waits for what runs and closes the file.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A transaction that holds the one write lock from its first statement.
    async fn begin_write(&self) -> Result<Transaction<'static, Sqlite>, RegistryError> {
        self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(while_doing("begin a change"))
    }
}

fn migrations() -> Migrator {
    let registry = include_str!("../migrations/0001_registry.sql").into_sql_str();
    Migrator::with_migrations(vec![Migration::new(
        1,
        "registry".into(),
        MigrationType::Simple,
        registry,
        false,
    )])
}

/// Numbers that SQLite stores as signed ones.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
