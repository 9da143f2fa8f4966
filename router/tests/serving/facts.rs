//! Facts on their way: from the cache into the request, or the request onto its default Arm.

use std::time::Duration;

use switchboard_router::config::FactsSource;
use switchboard_shared::decide::Reason;
use switchboard_shared::definition::{
    Attribute, Check, Comparison, FactKind, FactsConflict, FactsInto, FactsObject, FactsOwner,
    Predicate, Source, Value, ValueKind,
};

use crate::cache::{Cache, bulk, redis};
use crate::client::{Answer, Client, post};
use crate::router::{Router, with_facts};
use crate::upstream::{Seen, Upstream};

fn body(pointer: &str, owner: FactsOwner, conflict: FactsConflict) -> FactsInto {
    FactsInto::Body(FactsObject { pointer: pointer.into(), owner, as_text: false, conflict })
}

/// A router with a cache that knows everything, and the two model servers.
fn setup(into: FactsInto) -> (Upstream, Upstream, Cache, Router) {
    let cache = Cache::answering(|key| match key.split(':').next() {
        Some("country") => bulk("D\"é"),
        _ => bulk("7.50"),
    });
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing(""));
    let router = Router::with(&with_facts(stable.address, heavy.address, into), redis(&cache));
    router.wait_for(1, |worker| worker.facts_connected.get());
    (stable, heavy, cache, router)
}

fn ask(router: &Router, lines: &str, body: &str) -> Answer {
    let mut client = Client::connect(router.address);
    client.send(post("FEED", &format!("x-user-id: u1\r\n{lines}"), body));
    client.answer()
}

fn forwarded(into: FactsInto, lines: &str, body: &str) -> Seen {
    let (_stable, heavy, _cache, router) = setup(into);
    let answer = ask(&router, lines, body);
    assert_eq!((answer.status, answer.header("x-switchboard-facts")), (200, Some("hit")));
    assert_eq!(answer.header("x-switchboard-arm"), Some("heavy"));
    let seen = heavy.next();
    assert_eq!(seen.header("content-length"), Some(seen.body.len().to_string().as_str()));
    assert_eq!((seen.count("content-length"), seen.count("transfer-encoding")), (1, 0));
    seen
}

/// JS-01, JS-04
#[test]
fn facts_go_into_the_body_and_nothing_else_of_it_changes() {
    use FactsConflict::Replace;
    use FactsOwner::{Router as Own, Shared};
    let own = |pointer| body(pointer, Own, Replace);
    let shared = |pointer| body(pointer, Shared, Replace);
    let as_text = FactsInto::Body(FactsObject {
        pointer: "/metadata".into(),
        owner: Shared,
        as_text: true,
        conflict: Replace,
    });
    let facts = r#"{"country":"D\"é","depth":7.50}"#;
    let inner = &facts[1..facts.len() - 1];
    for (into, sent, expected) in [
        (
            own("/facts"),
            r#" {"k": [1e400, 0.10] } "#,
            format!(r#" {{"facts":{facts},"k": [1e400, 0.10] }} "#),
        ),
        (own("/facts"), "{}", format!(r#"{{"facts":{facts}}}"#)),
        (own("/facts"), "{ }", format!(r#"{{"facts":{facts} }}"#)),
        (
            own("/facts"),
            r#"{"a":1,"facts" : {"country":"X","admin":true} ,"b":2}"#,
            format!(r#"{{"a":1,"facts" : {facts} ,"b":2}}"#),
        ),
        (own("/f\\u0061cts"), r#"{"a":1}"#, format!(r#"{{"f\\u0061cts":{facts},"a":1}}"#)),
        (
            own("/facts"),
            r#"{"f\u0061cts":"x","b":2}"#,
            format!(r#"{{"f\u0061cts":{facts},"b":2}}"#),
        ),
        (own("/a/b/c"), r#"{"a":{"x":1}}"#, format!(r#"{{"a":{{"b":{{"c":{facts}}},"x":1}}}}"#)),
        (shared("/parameters"), r#"{"id":"1"}"#, format!(r#"{{"parameters":{facts},"id":"1"}}"#)),
        (shared("/parameters"), r#"{"parameters":null}"#, format!(r#"{{"parameters":{facts}}}"#)),
        (
            shared("/parameters"),
            r#"{"parameters": {"k":1}}"#,
            format!(r#"{{"parameters": {{{inner},"k":1}}}}"#),
        ),
        (
            shared("/parameters"),
            r#"{"parameters":{"depth":{"x":[1]},"k":"}"}}"#,
            r#"{"parameters":{"country":"D\"é","depth":7.50,"k":"}"}}"#.to_owned(),
        ),
        (
            shared(""),
            r#"{"country":"X","k":1}"#,
            r#"{"depth":7.50,"country":"D\"é","k":1}"#.to_owned(),
        ),
        (
            as_text,
            r#"{"n":1}"#,
            r#"{"metadata":{"country":"D\"é","depth":"7.50"},"n":1}"#.to_owned(),
        ),
    ] {
        let seen = forwarded(into, "", sent);
        assert_eq!(String::from_utf8(seen.body).unwrap(), expected, "{sent}");
    }
}

#[test]
fn digests_of_an_edited_body_are_dropped_and_others_kept() {
    let lines = "content-digest: sha-256=:x:\r\ndigest: x\r\ncontent-md5: x\r\nx-other: 1\r\n";
    let seen = forwarded(FactsInto::default(), lines, "{}");
    for name in ["content-digest", "digest", "content-md5"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("x-other"), Some("1"));
    let seen = forwarded(FactsInto::Headers, lines, "not json");
    assert_eq!((seen.header("digest"), seen.body.as_slice()), (Some("x"), &b"not json"[..]));
}

#[test]
fn facts_go_as_headers_and_a_clients_own_never_arrive() {
    let lines = "x-switchboard-fact-country: FORGED\r\nX-Switchboard-Fact-Admin: 1\r\n";
    let seen = forwarded(FactsInto::Headers, lines, "");
    assert_eq!(seen.header("x-switchboard-fact-country"), Some("D\"é"));
    assert_eq!(seen.header("x-switchboard-fact-depth"), Some("7.50"));
    assert_eq!(
        (seen.count("x-switchboard-fact-country"), seen.count("x-switchboard-fact-admin")),
        (1, 0)
    );
}

/// JS-01, MS-01: also chunked, large, and announced with Expect.
#[test]
fn a_body_that_comes_in_pieces_gets_facts_too() {
    let (_stable, heavy, _cache, router) = setup(FactsInto::default());
    let mut client = Client::connect(router.address);
    let pad = "x".repeat(200_000);
    let sent = format!("{{\"pad\":\"{pad}\"}}");
    let facts = "{\"facts\":{\"country\":\"D\\\"é\",\"depth\":7.50},";
    for head in ["transfer-encoding: chunked".to_owned(), format!("content-length: {}", sent.len())]
    {
        client.send(format!(
            "POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\nx-user-id: u1\r\n\
             expect: 100-continue\r\n{head}\r\n\r\n"
        ));
        assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
        let (first, second) = sent.split_at(70_000);
        for piece in [first, second] {
            match head.starts_with("transfer") {
                true => client.send(format!("{:x}\r\n{piece}\r\n", piece.len())),
                false => client.send(piece),
            }
        }
        if head.starts_with("transfer") {
            client.send("0\r\n\r\n");
        }
        assert_eq!(client.answer().status, 200);
        let seen = heavy.next();
        assert_eq!((seen.count("content-length"), seen.count("transfer-encoding")), (1, 0));
        assert_eq!(String::from_utf8(seen.body).unwrap(), format!("{facts}{}", &sent[1..]));
    }
}

/// JS-01: of no bytes, of one, and of as many as a Fact may have, all of them of two bytes each.
#[test]
fn the_length_of_a_body_with_facts_is_that_of_its_bytes() {
    let value = |bytes: usize| match bytes {
        1 => "D".to_owned(),
        bytes => "é".repeat(bytes / 2),
    };
    let cache = Cache::answering(move |key| match key.split_once(':').unwrap() {
        ("country", bytes) => bulk(value(bytes.parse().unwrap())),
        _ => bulk("1"),
    });
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing(""));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let router = Router::with(&definition, redis(&cache));
    router.wait_for(1, |worker| worker.facts_connected.get());
    for bytes in [0, 1, 2, 65_536] {
        let mut client = Client::connect(router.address);
        let plain = post("FEED", &format!("x-user-id: {bytes}\r\n"), " { \"k\" : \"é\" } ");
        let chunked = format!(
            "POST / HTTP/1.1\r\nhost: a\r\nx-switchboard-objective: FEED\r\nx-user-id: {bytes}\r\n\
             content-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n\
             3\r\n {{ \r\nd\r\n\"k\" : \"é\" }} \r\n0\r\n\r\n"
        );
        for request in [plain, chunked] {
            client.send(&request);
            assert_eq!(client.answer().header("x-switchboard-facts"), Some("hit"));
            let seen = heavy.next();
            let country = value(bytes);
            let expected = format!(
                " {{\"facts\":{{\"country\":\"{country}\",\"depth\":1}}, \"k\" : \"é\" }} "
            );
            assert!(seen.body == expected.as_bytes(), "{bytes}");
            assert_eq!(seen.header("content-length"), Some(expected.len().to_string().as_str()));
            assert_eq!((seen.count("content-length"), seen.count("transfer-encoding")), (1, 0));
        }
    }
}

/// RD-03
#[test]
fn a_value_that_is_not_of_its_type_is_never_spliced_in() {
    for (kind, value) in [
        (FactKind::Json, "{\"a\":1"),
        (FactKind::Json, "1,\"admin\":true"),
        (FactKind::Json, ""),
        (FactKind::Number, "NaN"),
        (FactKind::Number, "1e400"),
        (FactKind::Number, "0x1"),
        (FactKind::Boolean, "yes"),
    ] {
        let cache = Cache::answering(move |key| match key.split(':').next() {
            Some("country") => bulk(value),
            _ => bulk("1"),
        });
        let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
        let mut definition = with_facts(stable.address, heavy.address, FactsInto::default());
        definition.facts[0].kind = kind;
        let router = Router::with(&definition, redis(&cache));
        router.wait_for(1, |worker| worker.facts_connected.get());
        let answer = ask(&router, "", "{\"k\":1}");
        assert_eq!(answer.text(), "stable{\"k\":1}", "{value}");
        assert_eq!(answer.header("x-switchboard-facts"), Some("wrong_type"), "{value}");
    }
}

/// JS-02, JS-05, JS-06
#[test]
fn what_a_body_cannot_take_is_the_clients_fault() {
    use FactsConflict::{Refuse, Replace};
    use FactsOwner::{Router as Own, Shared};
    let own = body("/facts", Own, Replace);
    let refusing = body("/facts", Own, Refuse);
    let merging = body("/p", Shared, Refuse);
    for (into, lines, sent, status, reason) in [
        (own.clone(), "", r#"{"facts":1,"facts":2}"#, 400, "json_duplicate_member"),
        (own.clone(), "", r#"{"facts":1,"f\u0061cts":2}"#, 400, "json_duplicate_member"),
        (own.clone(), "", "[1]", 400, "facts_no_object"),
        (own.clone(), "", "{\"a\":", 400, "json_malformed"),
        (own.clone(), "content-encoding: gzip\r\n", "{}", 415, "body_encoded"),
        (own.clone(), "content-encoding: zstd\r\n", "{}", 415, "body_encoded"),
        (own.clone(), "content-encoding: identity, gzip\r\n", "{}", 415, "body_encoded"),
        (body("/a/b", Own, Replace), "", r#"{"a":5}"#, 400, "facts_no_object"),
        (refusing, "", r#"{"facts":{}}"#, 400, "facts_member_taken"),
        (merging.clone(), "", r#"{"p":{"depth":1}}"#, 400, "facts_member_taken"),
        (merging, "", r#"{"p":[]}"#, 400, "facts_no_object"),
    ] {
        let (stable, heavy, _cache, router) = setup(into);
        let answer = ask(&router, lines, sent);
        assert_eq!(answer.status, status, "{sent}: {}", answer.text());
        assert!(answer.text().contains(reason), "{sent}: {}", answer.text());
        assert_eq!(stable.left() + heavy.left(), 0);
    }
}

#[test]
fn what_the_cache_does_not_give_leads_to_the_default_arm_with_the_original_body() {
    let sent = " {\"facts\": {\"mine\":1}, \"k\": 1}";
    for (reply, reason, note) in [
        ("$-1\r\n", Reason::FactsMissing, "missing"),
        ("_\r\n", Reason::FactsMissing, "missing"),
        ("-LOADING Redis is loading the dataset in memory\r\n", Reason::FactsFailed, "failed"),
        ("-MOVED 1 127.0.0.1:1\r\n", Reason::FactsFailed, "failed"),
        ("-NOAUTH Authentication required.\r\n", Reason::FactsFailed, "failed"),
        ("-BUSY Redis is busy running a script\r\n", Reason::FactsFailed, "failed"),
        ("$67108864\r\n", Reason::FactsUnavailable, "unavailable"),
        ("-WRONGTYPE Operation against a key\r\n", Reason::FactsWrongType, "wrong_type"),
        (":5\r\n", Reason::FactsWrongType, "wrong_type"),
        ("$1\r\n\u{1}\r\n", Reason::FactsWrongType, "wrong_type"),
        ("*0\r\n", Reason::FactsUnavailable, "unavailable"),
        ("HTTP/1.1 400 Bad Request\r\n", Reason::FactsUnavailable, "unavailable"),
    ] {
        let cache = Cache::answering(move |key| match key.split(':').next() {
            Some("country") => reply.as_bytes().to_vec(),
            _ => bulk("1"),
        });
        let (stable, heavy) = (Upstream::echoing(""), Upstream::echoing(""));
        let headers =
            if reply.contains('\u{1}') { FactsInto::Headers } else { FactsInto::default() };
        let router =
            Router::with(&with_facts(stable.address, heavy.address, headers), redis(&cache));
        router.wait_for(1, |worker| worker.facts_connected.get());
        let answer = ask(&router, "", sent);
        assert_eq!((answer.status, answer.text().as_str()), (200, sent), "{reply}");
        assert_eq!(answer.header("x-switchboard-arm"), Some("stable"));
        assert_eq!(answer.header("x-switchboard-reason"), Some(reason.label()), "{reply}");
        assert_eq!(answer.header("x-switchboard-facts"), Some(note));
        assert_eq!(router.counted(|worker| worker.fallouts.get(reason)), 1);
        assert_eq!(heavy.left(), 0);
    }
}

#[test]
fn a_late_fact_falls_out_within_the_budget_and_its_reply_goes_to_nobody() {
    let cache = Cache::start(|key| {
        let (kind, unit) = key.split_once(':').unwrap();
        let late = Duration::from_millis(if unit == "slow" { 400 } else { 0 });
        (late, if kind == "country" { bulk(unit) } else { bulk("1") })
    });
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing(""));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let settings = redis(&cache);
    let router = Router::with(&definition, |config| {
        settings(config);
        config.facts.budget = Duration::from_millis(100);
    });
    router.wait_for(1, |worker| worker.facts_connected.get());
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "x-user-id: slow\r\n", "{}"));
    let answer = client.answer();
    assert_eq!(
        (answer.text().as_str(), answer.header("x-switchboard-facts")),
        ("stable{}", Some("late"))
    );
    router.wait_for(2, |worker| worker.facts_replies_unheard.get());
    client.send(post("FEED", "x-user-id: quick\r\n", "{}"));
    assert!(client.answer().text().contains(r#""country":"quick""#));
    assert_eq!(router.counted(|worker| worker.facts_connects.get()), 1, "the same connection");
}

#[test]
fn without_a_source_or_a_unit_a_required_fact_is_not_there() {
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing(""));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let router = Router::start(&definition);
    assert_eq!(ask(&router, "", "{}").header("x-switchboard-facts"), Some("unavailable"));
    let (_stable, _heavy, cache, router) = setup(FactsInto::default());
    let mut client = Client::connect(router.address);
    client.send(post("FEED", "", "{}"));
    assert_eq!(client.answer().header("x-switchboard-facts"), Some("missing"));
    assert_eq!(cache.asked.load(std::sync::atomic::Ordering::SeqCst), 0, "nobody was asked for");
}

#[test]
fn the_default_arms_own_facts_have_their_defaults_after_a_fallout() {
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing(""));
    let mut definition = with_facts(stable.address, heavy.address, FactsInto::default());
    definition.objectives[0].arms[0].facts = vec!["depth".into()];
    let router = Router::start(&definition);
    let answer = ask(&router, "", r#"{"k":1}"#);
    assert_eq!(answer.text(), r#"stable{"facts":{"depth":0},"k":1}"#);
    // Nobody decided for `heavy`, and the cache is away: the default Arm stays, with defaults.
    definition.objectives[0].rules.clear();
    let router = Router::start(&definition);
    let answer = ask(&router, "", r#"{"k":1}"#);
    assert_eq!(answer.text(), r#"stable{"facts":{"depth":0},"k":1}"#);
    assert_eq!(answer.header("x-switchboard-facts"), Some("partial"));
    assert_eq!(answer.header("x-switchboard-reason"), Some("default"));
}

/// An Arm that is down is left with the client's own body, not with the Facts that were in it already.
#[test]
fn facts_of_an_arm_that_is_down_stay_behind() {
    let (_stable, heavy, cache, _router) = setup(FactsInto::default());
    let stable = Upstream::echoing("stable");
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    drop(heavy);
    let router = Router::with(&definition, redis(&cache));
    router.wait_for(1, |worker| worker.facts_connected.get());
    for _ in 0..5 {
        let answer = ask(&router, "", r#"{"k":1}"#);
        if answer.header("x-switchboard-reason") == Some("arm_down") {
            assert_eq!(answer.text(), r#"stable{"k":1}"#);
            return;
        }
    }
    panic!("the Arm is down");
}

#[test]
fn a_rule_may_ask_for_a_fact_and_does_not_match_without() {
    let cache = Cache::start(|key| {
        let unit = key.split(':').nth(1).unwrap();
        let late = Duration::from_millis(if unit == "slow" { 300 } else { 0 });
        (late, if unit == "nobody" { b"$-1\r\n".to_vec() } else { bulk("DE") })
    });
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let mut definition = with_facts(stable.address, heavy.address, FactsInto::default());
    for objective in &mut definition.objectives[..1] {
        objective.arms[1].facts.clear();
        objective.context.push(Attribute {
            name: "fact.country".into(),
            source: Source::Fact("country".into()),
            kind: ValueKind::Text,
            default: None,
        });
        let is = |comparison, value: &str| Predicate::Test {
            attribute: "fact.country".into(),
            check: Check::Is(comparison, Value::Text(value.into())),
        };
        // Neither holds where it is unknown.
        let parts = vec![is(Comparison::Equal, "DE"), is(Comparison::NotEqual, "DE")];
        objective.rules[0].when = Some(Predicate::Any(parts));
    }
    let settings = redis(&cache);
    let router = Router::with(&definition, |config| {
        settings(config);
        config.facts.budget = Duration::from_millis(100);
    });
    router.wait_for(1, |worker| worker.facts_connected.get());
    for (user, arm) in [("u1", "heavy"), ("nobody", "stable"), ("slow", "stable")] {
        let mut client = Client::connect(router.address);
        client.send(post("FEED", &format!("x-user-id: {user}\r\n"), "body"));
        let answer = client.answer();
        assert_eq!(answer.header("x-switchboard-arm"), Some(arm), "{user}");
        assert_eq!(answer.text(), format!("{arm}body"));
    }
}

#[test]
fn a_file_of_json_lines_is_a_source_and_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("facts.jsonl");
    let line = |country: &str| format!("{{\"key\":\"country:u1\",\"value\":\"{country}\"}}\n");
    std::fs::write(&file, line("DE")).unwrap();
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing(""));
    let router =
        Router::with(&with_facts(stable.address, heavy.address, FactsInto::default()), |config| {
            config.facts.source = FactsSource::File;
            config.facts.file.clone_from(&file);
        });
    let answer = ask(&router, "", "{}");
    assert_eq!(answer.text(), r#"{"facts":{"country":"DE","depth":0}}"#);
    assert_eq!(answer.header("x-switchboard-facts"), Some("partial"));
    std::fs::write(&file, line("FRANCE")).unwrap();
    for _ in 0..3000 {
        if ask(&router, "", "{}").text().contains("FRANCE") {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the new file is read");
}
