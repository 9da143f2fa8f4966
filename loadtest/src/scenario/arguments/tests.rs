use clap::{Args, FromArgMatches};

use super::super::Draws;
use super::*;

fn arguments(flags: &[&str]) -> ScenarioArguments {
    let command = ScenarioArguments::augment_args(clap::Command::new("t").no_binary_name(true));
    ScenarioArguments::from_arg_matches(&command.get_matches_from(flags)).unwrap()
}

fn wire(flags: &[&str]) -> String {
    let (scenario, _) = arguments(flags).scenario().unwrap();
    let mut wire = Vec::new();
    Draws::new(&scenario, 0).render(&scenario, 0, &mut wire);
    String::from_utf8(wire).unwrap()
}

fn refusal(flags: &[&str]) -> ScenarioError {
    arguments(flags).scenario().unwrap_err()
}

#[test]
fn flags_become_one_request() {
    let flags = [
        "--url=http://127.0.0.1:1/x?u={user}",
        "-H",
        "X-User-Id: {user}",
        "-d",
        r#"{"n":{n}}"#,
        "--objective=HOME",
    ];
    let expected = "POST /x?u=u0 HTTP/1.1\r\nx-user-id: u0\r\nhost: 127.0.0.1:1\r\n\
        content-type: application/json\r\nx-switchboard-objective: HOME\r\n\
        content-length: 7\r\n\r\n{\"n\":0}";
    assert_eq!(wire(&flags), expected);
}

#[test]
fn a_given_host_or_content_type_replaces_ours() {
    let wire =
        wire(&["--url=http://127.0.0.1:1/", "-H", "Host: h", "-H", "Content-Type: a/b", "-d", "x"]);
    assert_eq!(wire.matches("host:").count(), 1);
    assert_eq!(wire.matches("content-type: a/b").count(), 1);
    assert!(!wire.contains("application/json"));
}

#[test]
fn a_generated_body_has_exactly_the_asked_size() {
    for bytes in [2, 13, 14, 600] {
        let body = json_of_size(bytes);
        assert_eq!(body.len(), bytes);
        serde_json::from_slice::<serde_json::Value>(&body).unwrap();
    }
}

#[test]
fn flags_that_would_break_the_request_are_refused() {
    let url = "--url=http://127.0.0.1:1/";
    assert!(matches!(refusal(&["--url=ftp://x"]), ScenarioError::Url(_)));
    assert!(matches!(refusal(&[url, "-H", "no colon"]), ScenarioError::Head(HeadError::Field(_))));
    assert!(matches!(
        refusal(&[url, "-H", "a: b\r\nc: d"]),
        ScenarioError::Head(HeadError::Field(_))
    ));
    assert!(matches!(
        refusal(&[url, "-H", "content-length: 3"]),
        ScenarioError::Head(HeadError::Own(_))
    ));
    assert!(matches!(refusal(&[url, "-X", "GET /"]), ScenarioError::Head(HeadError::Method(_))));
    assert!(matches!(refusal(&[url, "--chunked"]), ScenarioError::ChunkedNothing));
    assert!(matches!(
        refusal(&[url, "--body-bytes=99999999999"]),
        ScenarioError::Size(SizeError::TooLong(_))
    ));
    assert!(matches!(refusal(&[url, "--body-file=/no/such"]), ScenarioError::BodyFile { .. }));
    assert!(matches!(refusal(&[url, "--objective=A=0"]), ScenarioError::NoWeight));
    assert!(matches!(refusal(&[url, "--target=unix:"]), ScenarioError::Target(_)));
}
