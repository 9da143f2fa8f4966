use switchboard_shared::snapshot::Digest;
use tempfile::TempDir;

use super::*;
use crate::rules::{Draft, RuleFile, RuleSet, Unmentioned, read};

async fn registry() -> (TempDir, Registry) {
    let folder = TempDir::new().expect("a folder");
    let registry = Registry::open(&folder.path().join("r.db")).await.expect("a new registry");
    (folder, registry)
}

fn content(layers: &[&str]) -> Content {
    let text: String =
        layers.iter().map(|name| format!("---\n{{ kind: Layer, name: {name} }}\n")).collect();
    let documents = read(&[RuleFile { name: "r".to_owned(), text }]).expect("good rules");
    let set = RuleSet::default();
    let draft = Draft::of_change(
        &set,
        &Default::default(),
        &Default::default(),
        &documents,
        Unmentioned::Keep,
        "g",
    );
    let draft = draft.expect("a good draft");
    Content { set: draft.set, allocations: draft.allocations }
}

fn assignment(content: &Content) -> Assignment<'_> {
    Assignment {
        action: Action::Apply,
        restores: None,
        actor: "me",
        content,
        version_min: 1,
        now_ms: 5,
    }
}

async fn activate(registry: &Registry, content: &Content) -> u64 {
    let version = registry.assign(&assignment(content)).await.expect("a version");
    let signed = Signed { digest: Digest::of(b"x"), file: b"file" };
    registry.begin_validation(version, signed, 6).await.expect("assigned");
    for step in [
        (State::Validating, State::Validated),
        (State::Validated, State::Activating),
        (State::Activating, State::Active),
    ] {
        registry.step(version, step, None, &[], 7).await.expect("in that state");
    }
    version
}

#[tokio::test]
async fn a_number_is_never_given_twice_even_if_its_row_is_gone() {
    let (_folder, registry) = registry().await;
    let content = content(&["a"]);
    let numbers = [
        registry.assign(&assignment(&content)).await.expect("a version"),
        registry.assign(&assignment(&content)).await.expect("a version"),
    ];
    assert_eq!(numbers, [1, 2]);
    sqlx::query("DELETE FROM version WHERE version = 2")
        .execute(&registry.pool)
        .await
        .expect("sql");
    assert_eq!(registry.assign(&assignment(&content)).await.expect("a version"), 3);
    let higher = Assignment { version_min: 100, ..assignment(&content) };
    assert_eq!(registry.assign(&higher).await.expect("a version"), 100);
    assert_eq!(registry.assign(&assignment(&content)).await.expect("a version"), 101);
    let last = Assignment { version_min: i64::MAX.unsigned_abs(), ..assignment(&content) };
    registry.assign(&last).await.expect("2⁶³ − 1");
    let error = registry.assign(&last).await.expect_err("nothing after it");
    assert!(matches!(error, RegistryError::Exhausted { .. }), "{error:?}");
}

#[tokio::test]
async fn a_version_takes_no_step_from_where_it_is_not() {
    let (_folder, registry) = registry().await;
    let version = registry.assign(&assignment(&content(&["a"]))).await.expect("a version");
    let step = (State::Validated, State::Activating);
    let error = registry.step(version, step, None, &[], 1).await.expect_err("it is Assigned");
    assert!(matches!(error, RegistryError::NotInState { version: 1, .. }), "{error:?}");
    let record = registry.version(version).await.expect("it is there");
    assert_eq!(record.state, State::Assigned);
    assert_eq!(registry.unfinished().await.expect("sql"), [record]);
}

#[tokio::test]
async fn the_audit_log_is_append_only() {
    let (_folder, registry) = registry().await;
    activate(&registry, &content(&["a"])).await;
    for statement in ["UPDATE audit SET actor = 'you'", "DELETE FROM audit"] {
        let error = sqlx::query(statement).execute(&registry.pool).await.expect_err("refused");
        assert!(error.to_string().contains("the audit log is append-only"), "{error}");
    }
    let audit = registry.audit(10).await.expect("sql");
    assert_eq!(audit.len(), 5);
    assert!(audit.iter().all(|entry| entry.actor == "me"));
}

#[tokio::test]
async fn the_same_content_is_stored_once() {
    let (_folder, registry) = registry().await;
    for layers in [&["a"][..], &["a", "b"], &["a"]] {
        activate(&registry, &content(layers)).await;
    }
    let selections: Vec<_> =
        registry.versions(10).await.expect("sql").iter().map(|one| one.selection).collect();
    assert_eq!(selections, [1, 2, 1]);
    let objects: i64 = sqlx::query_scalar("SELECT count(*) FROM object")
        .fetch_one(&registry.pool)
        .await
        .expect("sql");
    assert_eq!(objects, 2);
    let record = registry.version(2).await.expect("it is there");
    assert_eq!(registry.content_of(&record).await.expect("sql"), content(&["a", "b"]));
}

#[tokio::test]
async fn old_and_failed_snapshot_files_are_given_up() {
    let (_folder, registry) = registry().await;
    for number in 0..40 {
        activate(&registry, &content(&[&format!("l{number}")])).await;
    }
    assert_eq!(registry.snapshot(8).await.expect("sql"), None);
    assert_eq!(registry.snapshot(9).await.expect("sql"), Some(b"file".to_vec()));
    let version = registry.assign(&assignment(&content(&["x"]))).await.expect("a version");
    let signed = Signed { digest: Digest::of(b"x"), file: b"file" };
    registry.begin_validation(version, signed, 6).await.expect("assigned");
    let step = (State::Validating, State::Failed);
    registry.step(version, step, Some("why"), &[], 7).await.expect("validating");
    assert_eq!(registry.snapshot(version).await.expect("sql"), None);
    let record = registry.version(version).await.expect("it is there");
    assert_eq!(record.reason.as_deref(), Some("why"));
}

#[tokio::test]
async fn a_file_that_is_no_registry_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("r.db");
    std::fs::write(&path, "this is no database at all, whatever its name may be").expect("a file");
    let error = Registry::open(&path).await.expect_err("garbage");
    assert!(matches!(error, RegistryError::Open { .. } | RegistryError::Migrate(_)), "{error:?}");
}

#[tokio::test]
async fn a_registry_of_a_newer_build_is_refused() {
    let (folder, registry) = registry().await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'newer', 1, x'00', 0)",
    )
    .execute(&registry.pool)
    .await
    .expect("sql");
    registry.close().await;
    let error = Registry::open(&folder.path().join("r.db")).await.expect_err("newer");
    assert!(matches!(error, RegistryError::Migrate(_)), "{error:?}");
}
