//! TLS to a real Redis server, with certificates that the test makes.

use std::path::PathBuf;
use std::process::Command;

use switchboard_router::config::Config;
use switchboard_shared::definition::FactsInto;

use crate::client::{Client, post};
use crate::redis_server::{Redis, USERS, asked, at, free_port, until_it_recovers};
use crate::router::{Router, with_facts};
use crate::upstream::Upstream;

/// A certificate authority in a folder, with what it signed.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let authority = Self { folder: tempfile::tempdir().unwrap() };
        let made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
                    -subj /CN=authority -keyout ca.key -out ca.crt";
        authority.openssl(made);
        authority
    }

    /// Signs a certificate for the names, as `name.crt` and `name.key`.
    pub(crate) fn sign(&self, name: &str, names: &str) {
        let extensions = format!("basicConstraints=CA:FALSE\nsubjectAltName={names}\n");
        std::fs::write(self.file("extensions"), extensions).unwrap();
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={name} \
             -keyout {name}.key -out {name}.csr"
        ));
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
             -extfile extensions -out {name}.crt"
        ));
    }

    fn openssl(&self, words: &str) {
        let mut command = Command::new("openssl");
        let ended = command.args(words.split_whitespace()).current_dir(self.folder.path()).output();
        let ended = ended.expect("openssl is there: `make setup` installs it");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a server with its certificate is started with; `asks` says whether clients have to show one.
    pub(crate) fn options(&self, port: u16, asks: &str) -> Vec<String> {
        let text = |name: &str| self.file(name).display().to_string();
        [
            ("--tls-port", port.to_string()),
            ("--tls-cert-file", text("server.crt")),
            ("--tls-key-file", text("server.key")),
            ("--tls-ca-cert-file", text("ca.crt")),
            ("--tls-auth-clients", asks.to_owned()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }

    /// A server behind TLS, and its port there.
    fn serve(&self, asks: &str) -> (Redis, u16) {
        let port = free_port();
        let options = self.options(port, asks);
        (Redis::start(&options.iter().map(String::as_str).collect::<Vec<_>>()), port)
    }
}

pub(crate) fn with_tls(address: String, authority: PathBuf) -> impl FnOnce(&mut Config) {
    let settings = at(address);
    move |config| {
        settings(config);
        config.facts.tls = true;
        config.facts.tls_ca_file = authority;
    }
}

#[test]
fn facts_come_over_tls_as_they_do_without() {
    let authority = Authority::new();
    authority.sign("server", "IP:127.0.0.1");
    let (mut redis, port) = authority.serve("no");
    redis.know_all_users();
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let address = format!("127.0.0.1:{port}");
    let router = Router::with(&definition, with_tls(address, authority.file("ca.crt")));
    router.wait_for(1, |worker| worker.facts_connected.get());
    std::thread::scope(|scope| {
        for part in 0..4 {
            let address = router.address;
            scope.spawn(move || {
                let mut client = Client::connect(address);
                for user in (part..USERS).step_by(4) {
                    client.send(post("FEED", &format!("x-user-id: u{user}\r\n"), "{}"));
                    let own =
                        format!("heavy{{\"facts\":{{\"country\":\"u{user}\",\"depth\":{user}}}}}");
                    assert_eq!(client.answer().text(), own);
                }
            });
        }
    });
    // Longer than a record, and dropped without losing step where it is longer than a Fact may be.
    let mut client = Client::connect(router.address);
    for (bytes, note) in
        [(60_000, "hit"), (65_537, "wrong_type"), (3, "hit"), (300_000, "wrong_type")]
    {
        redis.know("u1", &"x".repeat(bytes));
        client.send(post("FEED", "x-user-id: u1\r\n", "{}"));
        let answer = client.answer();
        assert_eq!(answer.header("x-switchboard-facts"), Some(note), "{bytes}");
    }
    redis.kill();
    redis.restart(&[]);
    redis.wait_until_it_answers();
    redis.know("u1", "DE");
    until_it_recovers(&router, "killed, behind TLS");
}

#[test]
fn a_server_that_is_not_the_one_is_asked_for_nothing() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    authority.sign("server", "DNS:cache.test");
    let (redis, port) = authority.serve("no");
    redis.know("u1", "DE");
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    let tls = format!("127.0.0.1:{port}");
    for (address, by, name, is_good) in [
        (&tls, &authority, "cache.test", true),
        (&tls, &authority, "other.test", false),
        (&tls, &authority, "", false), // the address itself, for which the certificate is not
        (&tls, &stranger, "cache.test", false),
        (&redis.address().to_string(), &authority, "cache.test", false), // speaks no TLS
    ] {
        let settings = with_tls(address.clone(), by.file("ca.crt"));
        let router = Router::with(&definition, |config| {
            settings(config);
            config.facts.tls_server_name = name.into();
        });
        if is_good {
            router.wait_for(1, |worker| worker.facts_connected.get());
            assert_eq!(asked(&router).as_deref(), Some("hit"));
        } else {
            router.wait_for(2, |worker| worker.facts_connect_failures.get().min(2));
            assert_eq!(asked(&router).as_deref(), Some("unavailable"), "{address} {name:?}");
            assert_eq!(router.counted(|worker| worker.facts_connects.get()), 0);
        }
    }
    // Without TLS, its port says nothing that is RESP.
    let router = Router::with(&definition, at(&tls));
    router.wait_for(2, |worker| worker.facts_connect_failures.get().min(2));
    assert_eq!(asked(&router).as_deref(), Some("unavailable"));
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_it() {
    let authority = Authority::new();
    authority.sign("server", "IP:127.0.0.1");
    authority.sign("router", "DNS:router.test");
    let (redis, port) = authority.serve("yes");
    redis.know("u1", "DE");
    let (stable, heavy) = (Upstream::echoing("stable"), Upstream::echoing("heavy"));
    let definition = with_facts(stable.address, heavy.address, FactsInto::default());
    for shows in [true, false] {
        let settings = with_tls(format!("127.0.0.1:{port}"), authority.file("ca.crt"));
        let router = Router::with(&definition, |config| {
            settings(config);
            if shows {
                config.facts.tls_certificate_file = authority.file("router.crt");
                config.facts.tls_key_file = authority.file("router.key");
            }
        });
        if shows {
            router.wait_for(1, |worker| worker.facts_connected.get());
            assert_eq!(asked(&router).as_deref(), Some("hit"));
        } else {
            router.wait_for(2, |worker| worker.facts_connect_failures.get().min(2));
            assert_eq!(asked(&router).as_deref(), Some("unavailable"));
        }
    }
}
