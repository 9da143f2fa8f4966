//! Against programs of others, where the host has them.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::process::{BINARY, Upstream, run};

fn is_installed(program: &str) -> bool {
    let is_there = Path::new(program).exists();
    if !is_there {
        println!("skipped: there is no {program}");
    }
    is_there
}

/// The median that `wrk --latency` prints, in microseconds.
fn wrk_median_us(printed: &str) -> f64 {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix("50%")).unwrap().trim();
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((line.strip_suffix(unit)?, factor))).unwrap();
    number.parse::<f64>().unwrap() * factor
}

#[test]
fn our_median_agrees_with_wrk_on_the_same_server() {
    if !is_installed("/usr/bin/wrk") {
        return;
    }
    let upstream = Upstream::start(&["--latency=bimodal:20ms,200ms,0.1"]);
    let url = upstream.url("/");
    let flags = ["-t1", "-c8", "-d3s", "--latency", &url];
    let wrk = Command::new("/usr/bin/wrk").args(flags).output().unwrap();
    let theirs = wrk_median_us(&String::from_utf8(wrk.stdout).unwrap());
    let ours = run(&["--url", &url, "-c", "8", "--duration=3s"]).number("/latency_us/p50");
    println!("median: wrk {theirs:.0} us, ours {ours:.0} us");
    assert!((ours / theirs - 1.0).abs() < 0.1, "wrk {theirs} us, ours {ours} us");
}

/// A comparison of short measurements, everything on one core.
fn compare(out: &Path, flags: &[&str]) -> Output {
    let short = ["--rounds", "1", "--saturation", "400ms", "--rate-span", "500ms"];
    let quick = ["--warmup", "100ms", "--load-core", "0", "--peers-only"];
    let mut command = Command::new(BINARY);
    command.arg("compare").args(short).args(quick).args(flags).arg("--out").arg(out);
    command.output().unwrap()
}

#[test]
fn a_comparison_leaves_its_numbers_with_all_that_made_them() {
    if !is_installed("/usr/sbin/haproxy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let workload = "small-json-by-header";
    let flags = ["--peers", "direct,haproxy", "--workloads", workload];
    let output = compare(folder.path(), &flags);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let targets = String::from_utf8(output.stdout).unwrap();
    assert!(targets.contains("| not measured: "), "{targets}");

    let index = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    let entries = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
    let results = entries.map(|entry| entry.path()).find(|path| path.is_dir()).unwrap();
    let name = results.file_name().unwrap().to_str().unwrap();
    assert!(name.ends_with("-quick"), "one round is not for publication: {name}");
    assert!(index.contains(name), "{index}");

    let read = |name: &str| std::fs::read_to_string(results.join(name)).unwrap();
    let json = |name: &str| serde_json::from_str::<Value>(&read(name)).unwrap();
    assert!(read("README.md").contains("| haproxy |"), "{}", read("README.md"));
    assert!(read("configurations/small-json-by-header-haproxy-haproxy.cfg").contains("nbthread 1"));
    let machine = json("machine.json");
    assert!(machine["programs"]["haproxy"].as_str().unwrap().contains("HAProxy"), "{machine}");
    let rows = json("summary.json")["workloads"][0]["rows"].clone();
    assert!(rows[1]["cpu_us"]["median"].as_f64().unwrap() > 1.0, "{rows}");

    let plot = read("plots/small-json-by-header-latency.svg");
    assert!(plot.starts_with("<svg") && plot.contains("haproxy"), "{plot}");

    let raw = read("raw/small-json-by-header.jsonl");
    let lines: Vec<Value> = raw.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[1]["report"]["mode"], "open");
    assert!(lines[2]["report"]["cpu"][0]["cpu_us_per_answer"].as_f64().unwrap() > 1.0);

    // Each of the four measurements, two model servers and the proxy have their commands; none of
    // them, and no configuration, tells a folder of this machine.
    let commands = read("commands.txt");
    let count = |what: &str| commands.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count(" run --url "), 4);
    assert_eq!(count(" upstream "), 2);
    assert_eq!(count("haproxy -db -f WORK/"), 1);
    let here = std::env::current_dir().unwrap();
    assert!(!raw.contains(here.to_str().unwrap()) && !commands.contains("/tmp/"), "{commands}");
}

#[test]
fn a_peer_that_fails_is_dropped_and_told_and_the_others_go_on() {
    if !is_installed("/usr/sbin/haproxy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--peers", "direct,nginx,haproxy", "--program", "nginx=/bin/false"];
    let output = compare(folder.path(), &[&flags[..], &["--workloads", "body-64k"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("nginx dropped out (rehearsal): /bin/false ended with"), "{said}");
    let index = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    assert!(index.contains("not measured: nginx was not part of this run"), "{index}");
}

#[test]
fn a_comparison_of_nothing_is_refused() {
    let refused = |flags: &[&str]| {
        let output = Command::new(BINARY).arg("compare").args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--peers", "direct"]).contains("it takes two peers"));
    assert!(
        refused(&["--workloads", "x"]).contains("there is no workload x; there are small-json")
    );
    let message = refused(&["--peers", "direct,nginx", "--program", "nginx=/no/such"]);
    assert!(message.contains("there is no /no/such"), "{message}");
}
