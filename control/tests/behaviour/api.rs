//! The HTTP API against strangers, hostile bodies and its own document.

use serde_json::{Value, json};

use crate::stage::{Stage, StubModel, mode, rules, texts};

/// A JSON request with further header lines.
fn post(stage: &Stage, path: &str, headers: &str, body: &Value) -> (u16, Value) {
    let head =
        format!("POST {path} HTTP/1.1\nhost: localhost\ncontent-type: application/json{headers}");
    let (status, _, answer) = stage.http(&head, body.to_string().as_bytes());
    (status, serde_json::from_slice(&answer).unwrap_or(Value::Null))
}

fn bearer(stage: &Stage) -> String {
    format!("\nauthorization: Bearer {}", stage.token())
}

#[test]
fn a_token_is_made_for_its_owner_only() {
    let stage = Stage::serving();
    assert_eq!(mode(&stage.path("registry.db.token")), 0o600);
    assert_eq!(mode(&stage.path("signing.key")), 0o600);
    assert!(stage.log().contains("made a token file=registry.db.token"), "{}", stage.log());
    assert!(!stage.log().contains(&stage.token()));
}

#[test]
fn writes_need_the_token_and_reads_do_not_here() {
    let stage = Stage::serving();
    let body = json!({ "files": [] });
    assert_eq!(post(&stage, "/v1/apply", "", &body).0, 401);
    for wrong in ["Bearer wrong", "Basic eDp5", "Bearer", "Bearer "] {
        let header = format!("\nauthorization: {wrong}");
        let (status, problem) = post(&stage, "/v1/apply", &header, &body);
        assert_eq!((status, &problem["reason"]), (401, &json!("token_wrong")), "{wrong}");
    }
    let almost = format!("{}x", bearer(&stage));
    assert_eq!(post(&stage, "/v1/rollback", &almost, &json!({})).0, 401);
    assert_eq!(post(&stage, "/v1/apply", &bearer(&stage), &body).0, 200);
    assert_eq!(post(&stage, "/v1/plan", "", &body).0, 200);
    assert_eq!(stage.get("/v1/status").0, 200);
}

#[test]
fn a_browser_that_was_sent_here_by_another_site_reads_nothing() {
    let stage = Stage::serving();
    let read = |host: &str| stage.http(&format!("GET /v1/export HTTP/1.1\nhost: {host}"), b"").0;
    assert_eq!(read("evil.example:7700"), 401);
    assert_eq!(read("localhost.evil.example"), 401);
    assert_eq!(read("127.0.0.1:1"), 409); // nothing is active, but it may ask
    assert_eq!(read("[::1]:1"), 409);
    // And a form cannot plan: it cannot say that its body is JSON.
    let head = "POST /v1/plan HTTP/1.1\nhost: localhost\ncontent-type: text/plain";
    assert_eq!(stage.http(head, b"{\"files\":[]}").0, 415);
}

#[test]
fn hostile_bodies_get_the_right_problem() {
    let stage = Stage::serving();
    let send = |path: &str, body: &[u8]| {
        let head = format!(
            "POST {path} HTTP/1.1\nhost: localhost\ncontent-type: application/json{}",
            bearer(&stage)
        );
        let (status, head, body) = stage.http(&head, body);
        assert!(head.contains("application/problem+json"), "{head}");
        let problem: Value = serde_json::from_slice(&body).expect("JSON");
        (status, problem["reason"].as_str().expect("a label").to_owned())
    };
    assert_eq!(send("/v1/apply", b""), (400, "body".to_owned()));
    assert_eq!(send("/v1/apply", b"{\"files\":"), (400, "body".to_owned()));
    assert_eq!(send("/v1/apply", b"{\"files\":[],\"force\":true}"), (400, "body".to_owned()));
    assert_eq!(send("/v1/apply", "[".repeat(100_000).as_bytes()), (400, "body".to_owned()));
    assert_eq!(send("/v1/rollback", &vec![b' '; 65 << 10]), (413, "body_too_large".to_owned()));
    assert_eq!(send("/v1/apply", &vec![b' '; 35 << 20]), (413, "body_too_large".to_owned()));
    assert_eq!(send("/v1/nothing", b""), (404, "no_such_path".to_owned()));
    assert_eq!(send("/v1/status", b""), (405, "no_such_method".to_owned()));
    let bomb = json!({ "files": [{ "name": "bomb", "text": "a: &a [x]\nb: [*a, *a]\n" }] });
    assert_eq!(send("/v1/apply", bomb.to_string().as_bytes()), (422, "rules".to_owned()));
    let big = json!({ "files": [{ "name": "big", "text": "#".repeat((16 << 20) + 1) }] });
    assert_eq!(send("/v1/apply", big.to_string().as_bytes()), (422, "rules".to_owned()));
    assert_eq!(stage.get("/v1/versions/x").0, 400);
    assert_eq!(stage.get("/v1/versions/1").0, 404);
    assert_eq!(stage.get("/v1/versions?count=-1").0, 400);
    assert_eq!(stage.get("/v1/snapshot?version=0").0, 404);
    assert_eq!(stage.json(&["versions"])["versions"], json!([]));
}

#[test]
fn the_document_describes_every_path_that_is_served() {
    let stage = Stage::serving();
    let (status, body) = stage.get("/v1/openapi.json");
    assert_eq!(status, 200);
    let document: Value = serde_json::from_slice(&body).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let mut listed: Vec<_> = paths.keys().map(String::as_str).collect();
    listed.sort_unstable();
    let expected = [
        "/healthz",
        "/metrics",
        "/readyz",
        "/v1/apply",
        "/v1/audit",
        "/v1/explain",
        "/v1/export",
        "/v1/openapi.json",
        "/v1/plan",
        "/v1/rollback",
        "/v1/schema.json",
        "/v1/snapshot",
        "/v1/status",
        "/v1/versions",
        "/v1/versions/{version}",
    ];
    assert_eq!(listed, expected);
    for (path, operations) in paths {
        for method in operations.as_object().expect("operations").keys() {
            let path = path.replace("{version}", "1");
            let head = format!("{} {path} HTTP/1.1\nhost: localhost", method.to_uppercase());
            let (status, _, body) = stage.http(&head, b"");
            let reason =
                serde_json::from_slice::<Value>(&body).unwrap_or(Value::Null)["reason"].clone();
            assert_ne!(reason, "no_such_path", "{method} {path}");
            assert_ne!(status, 405, "{method} {path}");
        }
    }
    // Every schema that is referred to is there.
    let text = document.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().expect("a name");
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
    assert!(document["components"]["securitySchemes"]["token"].is_object());
}

#[test]
fn the_snapshot_file_is_what_routers_open() {
    use switchboard_shared::snapshot::{Expectations, Snapshot};

    let (stage, model) = (Stage::serving(), StubModel::start(200));
    assert_eq!(stage.get("/v1/snapshot").0, 409);
    stage.activate(&rules(&model, 9000, 1000));
    let (status, file) = stage.get("/v1/snapshot");
    assert_eq!(status, 200);
    let snapshot = Snapshot::open(&file, &stage.trusted(), Expectations::of_group("default"));
    let snapshot = snapshot.expect("a good file");
    assert_eq!(snapshot.version().get(), 1);
    assert_eq!(json!(snapshot.digest().to_string()), stage.json(&["status"])["active"]["digest"]);
}

#[test]
fn metrics_have_labels_of_closed_sets_only() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    stage.activate(&rules(&model, 9000, 1000));
    let (status, body) = stage.get("/metrics");
    let text = String::from_utf8(body).expect("text");
    assert_eq!(status, 200);
    assert!(text.contains("\nswitchboard_control_active_version 1\n"), "{text}");
    assert!(text.contains("\nswitchboard_control_routers{standing=\"current\"} 0\n"), "{text}");
    assert_eq!(stage.get("/healthz").0, 200);
    assert_eq!(stage.get("/readyz").0, 200);
}

#[test]
fn a_change_can_be_left_to_itself() {
    let (stage, model) = (Stage::serving(), StubModel::start(200));
    std::fs::write(stage.path("rules.yaml"), rules(&model, 9000, 1000)).expect("a folder");
    let report = stage.json(&["apply", "-f", "rules.yaml", "--no-wait"]);
    assert_eq!((&report["ended"], &report["version"]), (&json!("pending"), &json!(1)));
    crate::stage::wait_for("version 1 to be active", || {
        (stage.json(&["status"])["active"]["version"] == 1).then_some(())
    });
}

#[test]
fn messages_help_who_has_no_server_no_key_or_no_file() {
    let stage = Stage::new();
    let told = |arguments: &[&str]| {
        let output = stage.command(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        texts(&output).1
    };
    let error = told(&["status", "--server", "http://127.0.0.1:1"]);
    assert!(error.contains("does `switchboard-control serve` run there?"), "{error}");
    let error = told(&["status", "--server", "https://127.0.0.1:1"]);
    assert!(error.contains("is not of the form http://HOST:PORT"), "{error}");
    let error = told(&["apply", "-f", "nothing.yaml"]);
    assert!(error.contains("cannot open nothing.yaml"), "{error}");
    let error = told(&["apply", "-f", "sockets"]);
    assert!(error.contains("sockets holds no *.yaml file"), "{error}");
    let error = told(&["serve", "--signing-key", "nothing.key"]);
    assert!(error.contains("`switchboard-control keygen` makes one"), "{error}");
    let error = told(&["serve", "--signing-key", "signing.key.pub"]);
    assert!(error.contains("signing.key.pub is no signing key"), "{error}");
    let error = told(&["keygen", "--secret", "signing.key"]);
    assert!(error.contains("exists; keygen overwrites nothing"), "{error}");
}

#[test]
fn a_registry_has_one_control_process() {
    let stage = Stage::serving();
    let output = stage.command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--database",
        "registry.db",
        "--token-file",
        "registry.db.token",
    ]);
    let (_, error) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("another control process has the registry registry.db"), "{error}");
}

#[test]
fn a_taken_port_is_told() {
    let stage = Stage::serving();
    let other = Stage::new();
    let output = other.command(&["serve", "--listen", stage.address(), "--database", "other.db"]);
    assert_eq!(output.status.code(), Some(1));
    let error = texts(&output).1;
    assert!(error.contains(&format!("cannot listen on {}", stage.address())), "{error}");
}

#[test]
fn sigterm_ends_it_cleanly() {
    let mut stage = Stage::serving();
    assert_eq!(stage.terminate(), Some(0));
}
