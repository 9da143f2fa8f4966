use clap::{Args, FromArgMatches};

use super::super::Draws;
use super::*;

fn flags(flags: &[&str]) -> ScenarioArguments {
    let command = ScenarioArguments::augment_args(clap::Command::new("t").no_binary_name(true));
    let scenario = ["--scenario=here.toml"];
    ScenarioArguments::from_arg_matches(&command.get_matches_from([&scenario[..], flags].concat()))
        .unwrap()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.toml"), text).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("s.toml")
    }

    fn scenario(&self, given: &[&str]) -> Result<(Scenario, Address), ScenarioError> {
        let file = ScenarioFile::read(&self.path())
            .map_err(|source| ScenarioError::File { path: self.path(), source })?;
        file.scenario(&self.path(), &flags(given))
    }
}

/// The error with all its causes.
fn refusal(text: &str) -> String {
    let error = Folder::with(text).scenario(&[]).unwrap_err();
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    message
}

const WHOLE: &str = r#"
seed = 7
[target]
url = "http://127.0.0.1:8080"
[load]
rate = "100@1s,200@1s"
arrivals = "poisson"
connections = 8
[users]
count = 5
[attributes.country]
values = { DE = 1 }
per = "user"
[[request]]
objective = "HOME"
path = "/feed?country={country}"
headers = { x-user-id = "{user}", x-country = "{country}" }
body = '{"n":{n},"country":"{country}"}'
[request.checks]
status = [200, 404]
[[request]]
weight = 0
path = "/health"
[checks]
headers = { X-Model-Server = "m1" }
arm_shares = { HOME = { heavy = 0.1 } }
"#;

#[test]
fn a_file_says_what_flags_can_say_and_more() {
    let (scenario, target) = Folder::with(WHOLE).scenario(&[]).unwrap();
    assert_eq!((target.to_string(), scenario.seed), ("127.0.0.1:8080".to_owned(), 7));
    let mut wire = Vec::new();
    Draws::new(&scenario, 0).render(&scenario, 12, &mut wire);
    let expected = "POST /feed?country=DE HTTP/1.1\r\nx-country: DE\r\nx-user-id: u2\r\n\
        host: 127.0.0.1:8080\r\ncontent-type: application/json\r\nx-switchboard-objective: HOME\r\n\
        content-length: 23\r\n\r\n{\"n\":12,\"country\":\"DE\"}";
    assert_eq!(String::from_utf8(wire).unwrap(), expected);
    assert_eq!(scenario.requests[0].checks.as_ref().unwrap().statuses, [200, 404]);
    assert_eq!(scenario.requests[1].checks, None);
}

#[test]
fn flags_take_precedence_over_the_file() {
    let given = ["--url=http://h/other", "--target=127.0.0.1:9", "--seed=8"];
    let (scenario, target) = Folder::with(WHOLE).scenario(&given).unwrap();
    assert_eq!((target.to_string(), scenario.seed), ("127.0.0.1:9".to_owned(), 8));
}

#[test]
fn recorded_bodies_lie_beside_their_file() {
    let folder = Folder::with(
        "[target]\nurl = \"http://127.0.0.1:1/\"\n[[request]]\nbodies = { file = \"b.jsonl\" }\n",
    );
    std::fs::write(folder.0.path().join("b.jsonl"), "{\"a\":1}\n").unwrap();
    let (scenario, _) = folder.scenario(&[]).unwrap();
    let mut wire = Vec::new();
    Draws::new(&scenario, 0).render(&scenario, 0, &mut wire);
    assert!(String::from_utf8(wire).unwrap().ends_with("\r\n\r\n{\"a\":1}"));
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    let message = refusal("[target]\nurl = \"http://h/\"\n[[request]]\npaht = \"/\"\n");
    assert!(message.contains("line 4") && message.contains("paht"), "{message}");
    let message = refusal("[load]\nrates = 5\n[[request]]\n");
    assert!(message.contains("line 2") && message.contains("rates"), "{message}");
}

#[test]
fn what_contradicts_itself_is_refused() {
    let with =
        |request: &str| refusal(&format!("[target]\nurl = \"http://127.0.0.1:1/\"\n{request}"));
    let cases = [
        ("[[request]]\nbody = \"x\"\nbodies = { file = \"b\" }", "contradict each other"),
        ("[[request]]\nbody = \"x\"\nbody_bytes = 5", "needs a place for {padding}"),
        ("[[request]]\nobjective = \"\"", "an Objective is a token"),
        ("[[request]]\nweight = 0", "weight 0"),
        ("[[request]]\nchunked = true", "--chunked needs a body"),
        ("[[request]]\npath = \"feed\"", "is no path"),
        ("[[request]]\nheaders = { a = \"b\\nc\" }", "is no header field"),
        ("[[request]]\nbodies = { file = \"none\" }", "cannot read"),
        ("[[request]]\nbody_bytes = \"normal:5\"", "is no size"),
        ("[[request]]\n[users]\ncount = 0", "users.count"),
        ("[[request]]\n[attributes.n]\nvalues = [\"x\"]", "attribute `n`"),
    ];
    for (request, expected) in cases {
        let message = with(request);
        assert!(message.contains(expected), "{request}: {message}");
    }
    assert!(refusal("[[request]]\n").contains("target.url"));
    assert!(refusal("[target]\nurl = 5").contains("line 2"));
}

#[test]
fn the_examples_are_scenarios() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let file = ScenarioFile::read(&path).unwrap_or_else(|error| panic!("{error:?}"));
            file.scenario(&path, &flags(&[])).unwrap_or_else(|error| panic!("{error:?}"));
            count += 1;
        }
    }
    assert!(count >= 3, "{count}");
}
