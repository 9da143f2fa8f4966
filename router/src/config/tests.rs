use std::collections::BTreeSet;
use std::fs;

use toml::Value;

use super::*;

fn load(text: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("router.toml");
    fs::write(&file, text).unwrap();
    Config::load(Some(&file), &Overrides::default())
}

/// The error's text, its file cut down to `router.toml`.
fn refusal(text: &str) -> String {
    let error = load(text).unwrap_err().to_string();
    let name = error.find("router.toml").unwrap();
    error[name..].to_owned()
}

fn keys_of(value: &Value, prefix: &str, keys: &mut BTreeSet<String>) {
    for (name, value) in value.as_table().unwrap() {
        let path = format!("{prefix}{name}");
        // An empty table is a setting of its own, such as kafka.properties.
        if value.as_table().is_some_and(|table| !table.is_empty()) {
            keys_of(value, &format!("{path}."), keys);
        } else {
            assert!(keys.insert(path));
        }
    }
}

/// Holds a generated file to its generator, or writes it where `UPDATE_REFERENCE` is set.
fn assert_file_is(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap();
    assert!(found == expected, "{} is stale: UPDATE_REFERENCE=1 writes it anew", path.display());
}

#[test]
fn an_empty_file_means_the_defaults() {
    assert_eq!(load("").unwrap(), Config::default());
}

#[test]
fn the_example_holds_every_key_at_its_default() {
    let example = reference::example();
    assert_eq!(load(&example).unwrap(), Config::default());
    let (mut written, mut known) = (BTreeSet::new(), BTreeSet::new());
    keys_of(&toml::from_str(&example).unwrap(), "", &mut written);
    keys_of(&Value::try_from(Config::default()).unwrap(), "", &mut known);
    assert_eq!(written, known);
    assert_file_is("examples/router.toml", &example);
}

#[test]
fn the_reference_page_has_a_row_for_each_key() {
    let page = reference::markdown();
    assert_eq!(page.lines().filter(|line| line.starts_with("| `")).count(), reference::KEYS.len());
    assert_file_is("docs/router.toml.md", &page);
}

#[test]
fn an_unknown_key_is_refused_where_it_stands() {
    let text = refusal("group = \"a\"\n[limits]\nhead_byte_max = \"4KiB\"\n");
    assert!(text.starts_with("router.toml:3:1: unknown field `head_byte_max`, expected one of"));
    let text = refusal("[limit]\n");
    assert!(text.starts_with("router.toml:1:2: unknown field `limit`, expected one of"), "{text}");
}

#[test]
fn a_wrong_value_says_what_was_found_and_expected() {
    for (text, expected) in [
        (
            "[clocks]\nhead = \"fast\"",
            "router.toml:2:8: invalid value: string \"fast\", expected a duration above zero",
        ),
        (
            "[clocks]\n  connect = 5",
            "router.toml:2:13: invalid type: integer `5`, expected a string",
        ),
        (
            "[clocks]\nhead = \"0s\"",
            "router.toml:2:8: invalid value: string \"0s\", expected a dur",
        ),
        (
            "[clocks]\ntotal = \"on\"",
            "router.toml:2:9: invalid value: string \"on\", expected \"off",
        ),
        (
            "[limits]\nbody_bytes_max = \"4MB\"",
            "router.toml:2:18: invalid value: string \"4MB\", expected a size such as",
        ),
        (
            "listen = [\"127.0.0.1:80\", \"localhost:80\"]",
            "router.toml:1:10: invalid value: string \"localhost:80\", expected an address and port",
        ),
        (
            "[cores]\nworkers = 0",
            "router.toml:2:11: invalid value: integer `0`, expected \"auto\" or a number",
        ),
        ("[cores]\nworkers = \"all\"", "router.toml:2:11: invalid value: string \"all\", expected"),
        (
            "[cores]\nworkers = -1",
            "router.toml:2:11: invalid value: integer `-1`, expected \"auto\"",
        ),
        (
            "[cores]\npin = \"yes\"",
            "router.toml:2:7: invalid type: string \"yes\", expected a boole",
        ),
        ("group = \"a\"\ngroup = \"b\"", "router.toml:2:1: duplicate key"),
        ("group = ", "router.toml:1:9: "),
        ("# ä\ngruppe = 1", "router.toml:2:1: unknown field"),
        ("listen = [\"ä\", 7]", "router.toml:1:10: invalid value: string \"ä\""),
    ] {
        let found = refusal(text);
        assert!(found.starts_with(expected), "{text}\n{found}\n{expected}");
    }
}

#[test]
fn a_contradiction_is_refused_where_it_stands() {
    for (text, expected) in [
        (
            "[limits]\nhead_bytes_max = \"16KiB\"\ntarget_bytes_max = \"16KiB\"",
            "router.toml:3:20: limits.target_bytes_max: found 16KiB, expected 1B to 16320B",
        ),
        (
            "[limits]\nhead_bytes_max = \"1KiB\"",
            "router.toml:2:18: limits.head_bytes_max: found 1KiB",
        ),
        ("[limits]\nconnections_max = 0", "router.toml:2:19: limits.connections_max: found 0"),
        (
            "[limits]\nbody_bytes_max = \"1MiB\"\nbody_buffer_bytes_max = \"2MiB\"",
            "router.toml:3:25: limits.body_buffer_bytes_max: found 2MiB, expected at most 256MiB",
        ),
        ("listen = []", "router.toml:1:10: listen: found 0 addresses, expected 1 to 16"),
        (
            "listen = [\"[::1]:80\", \"[::1]:80\"]",
            "router.toml:1:10: listen: found [::1]:80 twice, expected each address once",
        ),
        (
            "listen = [\"127.0.0.1:9901\"]\nadmin.listen = \"127.0.0.1:9901\"",
            "router.toml:2:16: admin.listen: found 127.0.0.1:9901",
        ),
        (
            "listen = [\"unix:/run/a\"]\nfeed = { socket = \"/run/a\" }",
            "router.toml:2:19: feed.socket: found /run/a",
        ),
        ("[feed]\nname = \"Router 1\"", "router.toml:2:8: feed.name: found \"Router 1\", expected"),
        ("group = \"\"", "router.toml:1:9: group: found \"\", expected"),
        ("trusted_keys = []", "router.toml:1:16: trusted_keys: found 0 keys, expected 1 to 16"),
        ("[cores]\ncore_list = [1, 2, 1]", "router.toml:2:13: cores.core_list: found core 1 twice"),
        (
            "[cores]\npin = false\ncore_list = [1]",
            "router.toml:3:13: cores.core_list: found a list, with cores.pin = false",
        ),
        (
            "[upstream]\nidle = \"1h\"",
            "router.toml:2:8: upstream.idle: found 1h, expected at most upstream.age",
        ),
    ] {
        let found = refusal(text);
        assert!(found.starts_with(expected), "{text}\n{found}\n{expected}");
    }
}

#[test]
fn servers_of_facts_that_contradict_each_other_are_refused() {
    for (text, expected) in [
        (
            "[facts]\ncluster = true\ndatabase = 1",
            "router.toml:3:12: facts.database: found 1, expected 0, the only one that a cluster has",
        ),
        (
            "[facts]\nhedge_after = \"3ms\"",
            "router.toml:2:15: facts.hedge_after: found 3ms, expected \"off\" without facts.replica_",
        ),
        (
            "[facts]\nreplica_address = \"a:1\"\nhedge_after = \"10ms\"",
            "router.toml:3:15: facts.hedge_after: found 10ms, expected less than facts.budget",
        ),
        (
            "[facts]\nread_from = \"replica\"",
            "router.toml:2:13: facts.read_from: found \"replica\", expected \"primary\" without",
        ),
        (
            "[facts]\nhedge_percent_max = 51",
            "router.toml:2:21: facts.hedge_percent_max: found 51, expected 1 to 50",
        ),
        (
            "[facts]\ntls_ca_file = \"/ca\"",
            "router.toml:2:15: facts.tls_ca_file: found /ca, expected none without facts.tls = true",
        ),
        (
            "[facts]\ntls = true\ntls_key_file = \"/key\"",
            "router.toml:3:16: facts.tls_key_file: found /key, expected one exactly with",
        ),
        (
            "[facts]\ntls = true\naddress = \"unix:/redis\"\ntls_server_name = \"\"",
            "router.toml:4:19: facts.tls_server_name: found \"\", expected the server's name",
        ),
    ] {
        let found = refusal(text);
        assert!(found.starts_with(expected), "{text}\n{found}\n{expected}");
    }
}

#[test]
fn ports_that_the_kernel_chooses_never_collide() {
    let text = "listen = [\"127.0.0.1:0\", \"127.0.0.1:0\"]\nadmin.listen = \"127.0.0.1:0\"";
    assert_eq!(load(text).unwrap().listen.len(), 2);
}

#[test]
fn a_contradiction_that_a_flag_made_names_the_flag() {
    let overrides =
        Overrides { admin_listen: "127.0.0.1:8080".parse().ok(), ..Overrides::default() };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("router.toml");
    fs::write(&file, "admin.listen = \"127.0.0.1:1\"").unwrap();
    let error = Config::load(Some(&file), &overrides).unwrap_err().to_string();
    let expected = "--admin-listen: admin.listen: found 127.0.0.1:8080, expected an address that";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_file_that_was_asked_for_must_exist() {
    let missing = Path::new("/nonexistent/router.toml");
    let error = Config::load(Some(missing), &Overrides::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot read /nonexistent/router.toml");
}

#[test]
fn a_file_that_is_no_text_or_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("router.toml");
    fs::write(&file, b"group = \"a\"\nname = \"\xFF\"").unwrap();
    let error = Config::load(Some(&file), &Overrides::default()).unwrap_err().to_string();
    assert!(error.ends_with("router.toml:2:9: found bytes that are not UTF-8"), "{error}");
    let long = usize::try_from(crate::limits::CONFIG_BYTES_MAX).unwrap() + 1;
    fs::write(&file, vec![b'\n'; long]).unwrap();
    let error = Config::load(Some(&file), &Overrides::default()).unwrap_err();
    assert!(matches!(error, ConfigError::TooLong { .. }));
}
