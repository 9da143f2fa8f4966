//! A Redis server with the Facts of every user.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::CompareError;
use super::process::{Process, as_text, free_address};
use super::results::Results;
use super::workload::USERS;
use crate::net::cores::Cores;

/// How long Redis may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running Redis server; it ends with this value.
#[derive(Debug)]
pub struct Cache {
    address: String,
    _process: Process,
}

impl Cache {
    /// Starts it without persistence and gives each user three Facts.
    ///
    /// # Errors
    /// There is no `redis-server`, or it does not take the Facts.
    pub fn start(cores: &Cores, folder: &Path, results: &Results) -> Result<Self, CompareError> {
        let address = free_address().map_err(CompareError::file("a free port"))?;
        let port = address.rsplit_once(':').map_or("", |(_, port)| port);
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no"]);
        command.arg("--dir").arg(folder);
        results.note(&as_text(&command))?;
        let mut process = Process::start(command, cores, &folder.join("redis"))?;
        process.wait_for_port(&address)?;
        fill(&address).map_err(CompareError::file(format!("redis at {address}")))?;
        Ok(Self { address, _process: process })
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// One pipeline of as many commands as users, and as many answers.
fn fill(address: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let commands: String = (0..USERS).map(facts_of).collect();
    stream.write_all(commands.as_bytes())?;
    let mut answers = vec![0; OK.len() * USERS as usize];
    stream.read_exact(&mut answers)?;
    let all_are_ok = answers.chunks(OK.len()).all(|answer| answer == OK);
    if all_are_ok { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

const OK: &[u8] = b"+OK\r\n";

/// `MSET` of one user's Facts, as Redis reads it.
fn facts_of(user: u32) -> String {
    let country = ["AT", "DE", "FR", "IT"][user as usize % 4];
    let (depth, is_member) = (user % 40, user.is_multiple_of(3));
    let words = [
        "MSET".to_owned(),
        format!("user:u{user}:country"),
        country.to_owned(),
        format!("user:u{user}:session_depth"),
        depth.to_string(),
        format!("user:u{user}:is_member"),
        is_member.to_string(),
    ];
    let words_text: String =
        words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{words_text}", words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_a_user_are_one_command() {
        let command = facts_of(6);
        assert!(
            command.starts_with("*7\r\n$4\r\nMSET\r\n$15\r\nuser:u6:country\r\n$2\r\nFR\r\n"),
            "{command}"
        );
        assert!(command.ends_with("$17\r\nuser:u6:is_member\r\n$4\r\ntrue\r\n"), "{command}");
        assert_eq!(command.matches('$').count(), 7);
    }
}
