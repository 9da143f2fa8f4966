//! Against programs of others, where the host has them.

use std::path::Path;
use std::process::Command;

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

#[test]
fn a_comparison_leaves_its_numbers_with_all_that_made_them() {
    if !is_installed("/usr/sbin/haproxy") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let output = Command::new(BINARY)
        .args(["compare", "--peers", "direct,haproxy", "--rounds", "1", "--load-core", "0"])
        .args(["--duration", "700ms", "--warmup", "200ms", "--connections", "8", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let results = std::fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let read = |name: &str| std::fs::read_to_string(results.join(name)).unwrap();
    let json = |name: &str| serde_json::from_str::<Value>(&read(name)).unwrap();
    assert!(read("README.md").contains("| haproxy | "), "{}", read("README.md"));
    assert!(read("haproxy.cfg").contains("nbthread 1"));
    let machine = json("machine.json");
    assert!(machine["programs"]["haproxy"].as_str().unwrap().starts_with("HAProxy"), "{machine}");
    let saturation = json("raw/saturation-1-haproxy.json");
    assert!(saturation["cpu"][0]["cpu_us_per_answer"].as_f64().unwrap() > 1.0);
    assert_eq!(json("raw/rate-1-direct.json")["mode"], "open");

    // Each of the four measurements, two model servers and the proxy have their commands.
    let commands = read("commands.txt");
    assert_eq!(commands.lines().filter(|line| line.contains(" run --url ")).count(), 4);
    assert_eq!(commands.lines().filter(|line| line.contains(" upstream ")).count(), 2);
    assert_eq!(commands.lines().filter(|line| line.contains("haproxy -db -f ")).count(), 1);
}

#[test]
fn a_comparison_of_nothing_is_refused() {
    let refused = |flags: &[&str]| {
        let output = Command::new(BINARY).arg("compare").args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--peers", "direct"]).contains("it takes two peers"));
    let message = refused(&["--peers", "direct,nginx", "--nginx", "/no/such"]);
    assert!(message.contains("there is no /no/such"), "{message}");
}
