//! Asks the model servers what they saw.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use serde::Deserialize;

use super::super::CompareError;

/// The part of a model server's stats that is compared.
#[derive(Debug, Deserialize)]
pub(super) struct Stats {
    pub(super) requests: u64,
    pub(super) connections: u64,
}

/// Counters to zero; connections that are open now stay counted.
pub(super) fn reset(address: &str) -> Result<(), CompareError> {
    ask(address, "POST", "reset").map(drop)
}

pub(super) fn stats(address: &str) -> Result<Stats, CompareError> {
    Ok(serde_json::from_str(&ask(address, "GET", "stats")?)?)
}

fn ask(address: &str, method: &str, what: &str) -> Result<String, CompareError> {
    let asked = || -> io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        let head = format!("{method} /__control/{what} HTTP/1.1\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        body.ok_or_else(|| io::ErrorKind::InvalidData.into())
    };
    asked().map_err(CompareError::file(format!("http://{address}/__control/{what}")))
}
