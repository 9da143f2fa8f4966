//! Where an Objective is named, and what is decided by it.

use crate::client::{Client, post};
use crate::router::{Router, definition};
use crate::upstream::Upstream;

#[test]
fn an_objective_in_a_header_is_answered_by_its_arm() {
    let (stable, heavy) = (Upstream::echoing("stable:"), Upstream::echoing("heavy:"));
    let router = Router::start(&definition(&[stable.address], &[heavy.address]));
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "x-user-id: u1\r\n", "{}"));
    let answer = client.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "stable:{}"));
    assert_eq!(answer.header("x-switchboard-objective"), Some("FEED"));
    assert_eq!(answer.header("x-switchboard-arm"), Some("stable"));
    assert_eq!(answer.header("x-switchboard-model"), Some("ranker@1"));
    assert_eq!(answer.header("x-switchboard-snapshot"), Some("1"));
    assert_eq!(answer.header("x-switchboard-reason"), Some("default"));
    let id = answer.header("x-request-id").unwrap().to_owned();
    assert_eq!(stable.next().header("x-request-id"), Some(id.as_str()));

    client.send(post("FEED", "x-user-id: heavy\r\nx-request-id: mine\r\n", "{}"));
    let answer = client.answer();
    assert_eq!(answer.text(), "heavy:{}");
    assert_eq!(answer.header("x-switchboard-reason"), Some("rule"));
    let seen = heavy.next();
    assert_eq!((seen.header("x-request-id"), seen.count("x-request-id")), (Some("mine"), 1));
}

#[test]
fn an_objective_in_the_path_leaves_only_the_rest_of_the_path() {
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    for (path, forwarded) in [
        ("/v1/objectives/FEED/v2/models/a%2Fb/infer?x=%zz&y", "/v2/models/a%2Fb/infer?x=%zz&y"),
        ("/v1/objectives/FEED/", "/"),
        ("/v1/objectives/FEED", "/"),
        ("/v1/objectives/FEED?q", "/?q"),
    ] {
        client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
        assert_eq!(client.answer_to("GET").status, 200);
        let seen = upstream.next();
        assert_eq!(seen.head.lines().next(), Some(format!("GET {forwarded} HTTP/1.1").as_str()));
    }
}

#[test]
fn an_objective_in_the_body_is_replaced_by_the_models_name() {
    let (stable, heavy) = (Upstream::echoing(""), Upstream::echoing(""));
    let router = Router::start(&definition(&[stable.address], &[heavy.address]));
    let mut client = Client::connect(router.address);
    let body = r#" { "n": 1e400, "model" : "objective/CHAT" , "messages":[] } "#;
    client.send(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nx-user-id: heavy\r\ncontent-md5: x\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    ));
    let edited = r#" { "n": 1e400, "model" : "big-one" , "messages":[] } "#;
    assert_eq!(client.answer().text(), edited);
    let seen = heavy.next();
    assert_eq!(seen.header("content-length"), Some(edited.len().to_string().as_str()));
    assert_eq!(seen.header("content-md5"), None, "JS-01: it is wrong now");

    // JS-01: also chunked, in as many pieces as there are bytes.
    let chunked: String = body.chars().map(|byte| format!("1\r\n{byte}\r\n")).collect();
    client.send(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{chunked}0\r\n\r\n"
    ));
    assert_eq!(client.answer().text(), body.replace("objective/CHAT", "light"));
    let seen = stable.next();
    assert_eq!((seen.count("content-length"), seen.count("transfer-encoding")), (1, 0));
}

#[test]
fn context_from_the_body_decides_and_the_body_leaves_as_it_came() {
    let (stable, heavy) = (Upstream::echoing("stable:"), Upstream::echoing("heavy:"));
    let router = Router::start(&definition(&[stable.address], &[heavy.address]));
    let mut client = Client::connect(router.address);
    for (body, answered) in [
        (r#"{"context":{"country":"DE"},"x":0.10}"#, "heavy:"),
        (r#"{"context":{"country":"FR"}}"#, "stable:"),
        (r#"{"context":{"country":null}}"#, "stable:"),
        (r#"{"context":{}}"#, "stable:"),
    ] {
        client.send(post("COUNTRY", "", body));
        assert_eq!(client.answer().text(), format!("{answered}{body}"));
    }
    client.send("GET / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: COUNTRY\r\n\r\n");
    assert_eq!(client.answer_to("GET").text(), "stable:", "without a body the defaults hold");
    // JS-05: a byte order mark is taken off.
    client.send(post("COUNTRY", "", "\u{feff}{\"context\":{\"country\":\"DE\"}}"));
    assert_eq!(client.answer().text(), "heavy:{\"context\":{\"country\":\"DE\"}}");
}

#[test]
fn what_names_no_objective_of_the_snapshot_is_refused_by_the_router() {
    let upstream = Upstream::echoing("");
    let router = Router::start(&definition(&[upstream.address], &[upstream.address]));
    let mut client = Client::connect(router.address);
    let refused = |client: &mut Client, request: String| {
        client.send(request);
        let answer = client.answer();
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let problem: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(problem["status"], answer.status);
        (answer.status, problem["reason"].as_str().unwrap().to_owned())
    };
    let unknown = (404, "objective_unknown".to_owned());
    assert_eq!(refused(&mut client, post("NOPE", "", "{}")), unknown);
    assert_eq!(refused(&mut client, post("feed", "", "{}")), unknown);
    assert_eq!(refused(&mut client, post("", "", "{}")), unknown);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(refused(&mut client, get("/v1/objectives/NOPE/x")), unknown);
    assert_eq!(refused(&mut client, get("/")), (400, "objective_missing".to_owned()));
    let by_body = |body: &str| {
        format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    assert_eq!(refused(&mut client, by_body(r#"{"model":"objective/NOPE"}"#)), unknown);
    for body in [
        r#"{"model":"gpt"}"#,
        r#"{"model":5}"#,
        r#"{"model":null}"#,
        r#"{"model":{}}"#,
        "\"x\"",
        "{}",
    ] {
        assert_eq!(refused(&mut client, by_body(body)).1, "objective_missing", "{body}");
    }
    for body in [r#"{"model":"#, ""] {
        assert_eq!(
            refused(&mut client, by_body(body)),
            (400, "json_malformed".to_owned()),
            "{body}"
        );
    }
    let twice = r#"{"model":"objective/FEED","model":"objective/CHAT"}"#;
    assert_eq!(refused(&mut client, by_body(twice)), (400, "json_duplicate_member".to_owned()));
    let wrong = r#"{"context":{"country":7}}"#;
    assert_eq!(
        refused(&mut client, post("COUNTRY", "", wrong)),
        (400, "attribute_type".to_owned())
    );
    let coded = post("COUNTRY", "content-encoding: gzip\r\n", "abc");
    assert_eq!(refused(&mut client, coded), (415, "body_encoded".to_owned()));
    // JS-06: where nobody needs to read it, it passes.
    client.send(post("FEED", "content-encoding: gzip\r\n", "abc"));
    assert_eq!(client.answer().text(), "abc");
    assert_eq!(upstream.left(), 1, "nothing else was forwarded");
}

#[test]
fn before_the_first_snapshot_the_answer_is_503() {
    let router = Router::without_snapshot(|_| ());
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "", "{}"));
    let answer = client.answer();
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
}

#[test]
fn an_activation_shows_at_the_next_request_of_the_same_connection() {
    let (old, new) = (Upstream::echoing("old"), Upstream::echoing("new"));
    let mut router = Router::start(&definition(&[old.address], &[old.address]));
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "", ""));
    assert_eq!(client.answer().header("x-switchboard-snapshot"), Some("1"));
    router.publish(&definition(&[new.address], &[new.address]), 2);
    client.send(post("FEED", "", ""));
    let answer = client.answer();
    assert_eq!(
        (answer.header("x-switchboard-snapshot"), answer.text().as_str()),
        (Some("2"), "new")
    );
}
