//! Selections and placements: stored once, found again by digest.

use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection, Transaction, sqlite::SqliteRow};
use switchboard_shared::{allocation::Allocation as Owners, slot::SlotRange};

use super::{Registry, RegistryError, stored, version::Content, while_doing};
use crate::rules::{
    Allocations, ExperimentKey, ExperimentSlots, Kind, LayerOwners, Object, RuleSet, SlotSet,
};

/// Rows of one statement: each statement is a way to the database's thread and back, and SQLite takes
/// at most 32 766 values.
const ROWS_AT_ONCE: usize = 500;

/// An object as a row: its canonical JSON, and the digest of that with kind and name.
struct ObjectRow {
    digest: [u8; 32],
    kind: Kind,
    name: String,
    content: String,
}

impl ObjectRow {
    fn of(object: &Object) -> Self {
        let content = match object {
            Object::Objective(one) => serde_json::to_string(one),
            Object::Layer(one) => serde_json::to_string(one),
            Object::Fact(one) => serde_json::to_string(one),
            Object::Model(one) => serde_json::to_string(one),
            Object::Shard(one) => serde_json::to_string(one),
            Object::Allocation(one) => serde_json::to_string(one),
        }
        .expect("objects have text keys only, so JSON can hold them");
        let (kind, name) = (object.kind(), object.name());
        let mut hasher = blake3::Hasher::new();
        for part in [kind.word(), &name, &content] {
            hash_part(&mut hasher, part.as_bytes());
        }
        Self { digest: *hasher.finalize().as_bytes(), kind, name, content }
    }
}

/// Length first, so that no two lists of parts hash alike.
fn hash_part(hasher: &mut blake3::Hasher, part: &[u8]) {
    hasher.update(&(part.len() as u64).to_le_bytes());
    hasher.update(part);
}

/// Finds or stores what decides; returns its number.
pub(super) async fn store_selection(
    transaction: &mut Transaction<'static, Sqlite>,
    content: &Content,
    now_ms: u64,
) -> Result<i64, RegistryError> {
    let rows: Vec<_> = content.set.selection().map(|object| ObjectRow::of(&object)).collect();
    let slots = SlotRows::of(&content.allocations);
    let mut hasher = blake3::Hasher::new();
    for row in &rows {
        hasher.update(&row.digest);
    }
    for (key, arm, salt, slots) in &slots.experiments {
        for part in [&key.objective, &key.rule, arm, salt, slots] {
            hash_part(&mut hasher, part.as_bytes());
        }
    }
    for (layer, experiment, salt, slots) in &slots.layers {
        for part in [layer, experiment, salt, slots] {
            hash_part(&mut hasher, part.as_bytes());
        }
    }
    let digest = *hasher.finalize().as_bytes();
    let doing = "store a selection";
    if let Some(version) =
        find(transaction, "SELECT version FROM selection WHERE digest = ?", digest)
            .await
            .map_err(while_doing(doing))?
    {
        return Ok(version);
    }
    let version: i64 = sqlx::query_scalar(
        "INSERT INTO selection (version, digest, created_ms)
         VALUES ((SELECT coalesce(max(version), 0) + 1 FROM selection), ?, ?) RETURNING version",
    )
    .bind(digest.as_slice())
    .bind(stored(now_ms))
    .fetch_one(&mut **transaction)
    .await
    .map_err(while_doing(doing))?;
    let member = "INSERT INTO selection_object (selection, object) ";
    store_objects(transaction, &rows, version, member).await.map_err(while_doing(doing))?;
    slots.store(transaction, version).await.map_err(while_doing(doing))?;
    Ok(version)
}

/// Finds or stores what answers; returns its number.
pub(super) async fn store_placement(
    transaction: &mut Transaction<'static, Sqlite>,
    content: &Content,
    now_ms: u64,
) -> Result<i64, RegistryError> {
    let rows: Vec<_> = content.set.placement().map(|object| ObjectRow::of(&object)).collect();
    let mut hasher = blake3::Hasher::new();
    for row in &rows {
        hasher.update(&row.digest);
    }
    let digest = *hasher.finalize().as_bytes();
    let doing = "store a placement";
    if let Some(version) =
        find(transaction, "SELECT version FROM placement WHERE digest = ?", digest)
            .await
            .map_err(while_doing(doing))?
    {
        return Ok(version);
    }
    let version: i64 = sqlx::query_scalar(
        "INSERT INTO placement (version, digest, created_ms)
         VALUES ((SELECT coalesce(max(version), 0) + 1 FROM placement), ?, ?) RETURNING version",
    )
    .bind(digest.as_slice())
    .bind(stored(now_ms))
    .fetch_one(&mut **transaction)
    .await
    .map_err(while_doing(doing))?;
    let member = "INSERT INTO placement_object (placement, object) ";
    store_objects(transaction, &rows, version, member).await.map_err(while_doing(doing))?;
    Ok(version)
}

async fn find(
    connection: &mut SqliteConnection,
    query: &'static str,
    digest: [u8; 32],
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar(query).bind(digest.to_vec()).fetch_optional(connection).await
}

async fn store_objects(
    connection: &mut SqliteConnection,
    rows: &[ObjectRow],
    version: i64,
    member: &'static str,
) -> Result<(), sqlx::Error> {
    for rows in rows.chunks(ROWS_AT_ONCE) {
        let mut query = QueryBuilder::<Sqlite>::new(
            "INSERT OR IGNORE INTO object (digest, kind, name, content) ",
        );
        query.push_values(rows, |mut values, row| {
            values.push_bind(row.digest.as_slice()).push_bind(row.kind.word());
            values.push_bind(&row.name).push_bind(&row.content);
        });
        query.build().execute(&mut *connection).await?;
        let mut query = QueryBuilder::<Sqlite>::new(member);
        query.push_values(rows, |mut values, row| {
            values.push_bind(version).push_bind(row.digest.as_slice());
        });
        query.build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// Slot ownership as rows: key, owner, salt, ranges as JSON.
struct SlotRows {
    experiments: Vec<(ExperimentKey, String, String, String)>,
    layers: Vec<(String, String, String, String)>,
}

impl SlotRows {
    fn of(allocations: &Allocations) -> Self {
        let mut rows = Self { experiments: Vec::new(), layers: Vec::new() };
        for (key, slots) in &allocations.experiments {
            for (arm, ranges) in slots.arms.owners() {
                let row = (key.clone(), arm.to_owned(), slots.salt.clone(), text_of(ranges));
                rows.experiments.push(row);
            }
        }
        for (layer, owners) in &allocations.layers {
            for (experiment, ranges) in owners.experiments.owners() {
                let (owner, salt) = (experiment.to_owned(), owners.salt.clone());
                rows.layers.push((layer.clone(), owner, salt, text_of(ranges)));
            }
        }
        rows
    }

    async fn store(
        &self,
        connection: &mut SqliteConnection,
        selection: i64,
    ) -> Result<(), sqlx::Error> {
        for rows in self.experiments.chunks(ROWS_AT_ONCE) {
            let mut query = QueryBuilder::<Sqlite>::new(
                "INSERT INTO experiment_slots (selection, objective, rule, arm, salt, slots) ",
            );
            query.push_values(rows, |mut values, (key, arm, salt, slots)| {
                values.push_bind(selection).push_bind(&key.objective).push_bind(&key.rule);
                values.push_bind(arm).push_bind(salt).push_bind(slots);
            });
            query.build().execute(&mut *connection).await?;
        }
        for rows in self.layers.chunks(ROWS_AT_ONCE) {
            let mut query = QueryBuilder::<Sqlite>::new(
                "INSERT INTO layer_slots (selection, layer, experiment, salt, slots) ",
            );
            query.push_values(rows, |mut values, (layer, experiment, salt, slots)| {
                values.push_bind(selection).push_bind(layer).push_bind(experiment);
                values.push_bind(salt).push_bind(slots);
            });
            query.build().execute(&mut *connection).await?;
        }
        Ok(())
    }
}

fn text_of(ranges: &[SlotRange]) -> String {
    let set = SlotSet::of_ranges(ranges.to_vec()).expect("an owner has each Slot once");
    serde_json::to_string(&set).expect("a list of texts is JSON")
}

impl Registry {
    /// What a pair of selection and placement says.
    pub(super) async fn content(
        &self,
        selection: i64,
        placement: i64,
    ) -> Result<Content, RegistryError> {
        let doing = "read a version";
        let mut set = RuleSet::default();
        let rows = sqlx::query(
            "SELECT kind, content FROM object WHERE digest IN
             (SELECT object FROM selection_object WHERE selection = ?
              UNION SELECT object FROM placement_object WHERE placement = ?)",
        )
        .bind(selection)
        .bind(placement)
        .fetch_all(&self.pool)
        .await
        .map_err(while_doing(doing))?;
        for row in &rows {
            set.insert(object(row)?);
        }
        let mut allocations = Allocations::default();
        for (name, layer) in &set.layers {
            let owners = LayerOwners { salt: layer.salt.clone(), experiments: Owners::EMPTY };
            allocations.layers.insert(name.clone(), owners);
        }
        self.read_slots(selection, &mut allocations).await?;
        Ok(Content { set, allocations })
    }

    async fn read_slots(
        &self,
        selection: i64,
        allocations: &mut Allocations,
    ) -> Result<(), RegistryError> {
        let doing = "read who owns which Slots";
        let damaged = || RegistryError::Damaged { what: "Slots" };
        let experiments: Vec<(String, String, String, String, String)> = sqlx::query_as(
            "SELECT objective, rule, salt, arm, slots FROM experiment_slots WHERE selection = ?
             ORDER BY objective, rule",
        )
        .bind(selection)
        .fetch_all(&self.pool)
        .await
        .map_err(while_doing(doing))?;
        for group in experiments.chunk_by(|one, other| one.0 == other.0 && one.1 == other.1) {
            let [(objective, rule, salt, ..), ..] = group else { continue };
            let arms = owners(group.iter().map(|(_, _, _, arm, slots)| (arm, slots)));
            let key = ExperimentKey { objective: objective.clone(), rule: rule.clone() };
            let slots = ExperimentSlots { salt: salt.clone(), arms: arms.ok_or_else(damaged)? };
            allocations.experiments.insert(key, slots);
        }
        let layers: Vec<(String, String, String, String)> = sqlx::query_as(
            "SELECT layer, salt, experiment, slots FROM layer_slots WHERE selection = ?
             ORDER BY layer",
        )
        .bind(selection)
        .fetch_all(&self.pool)
        .await
        .map_err(while_doing(doing))?;
        for group in layers.chunk_by(|one, other| one.0 == other.0) {
            let [(layer, salt, ..), ..] = group else { continue };
            let experiments = owners(group.iter().map(|(_, _, owner, slots)| (owner, slots)));
            let experiments = experiments.ok_or_else(damaged)?;
            let owners = LayerOwners { salt: salt.clone(), experiments };
            allocations.layers.insert(layer.clone(), owners);
        }
        Ok(())
    }
}

fn object(row: &SqliteRow) -> Result<Object, RegistryError> {
    let doing = "read an object";
    let kind: String = row.try_get("kind").map_err(while_doing(doing))?;
    let content: String = row.try_get("content").map_err(while_doing(doing))?;
    let object = match Kind::of_word(&kind) {
        Some(Kind::Objective) => serde_json::from_str(&content).map(Object::Objective),
        Some(Kind::Layer) => serde_json::from_str(&content).map(Object::Layer),
        Some(Kind::Fact) => serde_json::from_str(&content).map(Object::Fact),
        Some(Kind::Model) => serde_json::from_str(&content).map(Object::Model),
        Some(Kind::Shard) => serde_json::from_str(&content).map(Object::Shard),
        Some(Kind::Allocation) | None => return Err(RegistryError::Damaged { what: "an object" }),
    };
    object.map_err(|_| RegistryError::Damaged { what: "an object" })
}

fn owners<'a>(rows: impl Iterator<Item = (&'a String, &'a String)>) -> Option<Owners> {
    let read = |(owner, slots): (&'a String, &'a String)| {
        Some((owner.as_str(), serde_json::from_str::<SlotSet>(slots).ok()?))
    };
    let owned: Vec<(&str, SlotSet)> = rows.map(read).collect::<Option<_>>()?;
    Owners::from_ranges(owned.iter().map(|(owner, slots)| (*owner, slots.ranges()))).ok()
}
