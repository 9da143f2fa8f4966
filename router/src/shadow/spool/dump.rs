//! `switchboard-router spool dump|verify`: a spool's records as JSON lines, and whether they are whole.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use switchboard_shared::shadow_record::ShadowRecord;

use super::frame::Frames;
use super::{SpoolError, files};
use crate::shadow::owned::{Kind, Record};

/// What was found in a spool.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Verified {
    /// Segment files.
    pub segments: u64,
    /// Complete records.
    pub records: u64,
    /// Bytes behind the last complete record of a segment, as a crash leaves them.
    pub torn_bytes: u64,
}

/// The spool cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// A file or the folder cannot be read.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The reader of the output is gone, or the disk is full.
    #[error("cannot write the lines")]
    Write(#[source] io::Error),
}

/// Writes every complete record as one line of JSON: `sequence`, `topic`, `key` and `record`, whose bodies
/// stand in `request.content` and `response.content` if they are UTF-8, else in `content_base64`. Safe while
/// a router runs: it only reads.
///
/// # Errors
/// See [`DumpError`].
pub fn dump(folder: &Path, to: &mut impl Write) -> Result<Verified, DumpError> {
    walk(folder, |record| {
        serde_json::to_writer(&mut *to, &line(record)).map_err(io::Error::from)?;
        to.write_all(b"\n")
    })
}

/// Reads everything and compares each checksum.
///
/// # Errors
/// A file or the folder cannot be read.
pub fn verify(folder: &Path) -> Result<Verified, DumpError> {
    walk(folder, |_| Ok(()))
}

fn walk(
    folder: &Path,
    mut each: impl FnMut(&Record<'_>) -> io::Result<()>,
) -> Result<Verified, DumpError> {
    let mut verified = Verified::default();
    for path in files(folder)? {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            // A running router dropped or delivered it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(SpoolError::new("read", &path, error).into()),
        };
        verified.segments += 1;
        let mut frames = Frames::new(&bytes);
        for (record, _) in frames.by_ref() {
            verified.records += 1;
            each(&record).map_err(DumpError::Write)?;
        }
        let (end, error) = frames.end();
        verified.torn_bytes += error.map_or(0, |_| (bytes.len() - end) as u64);
    }
    Ok(verified)
}

fn line(record: &Record<'_>) -> Value {
    json!({
        "sequence": record.sequence,
        "topic": record.topic,
        "key": record.key.map(String::from_utf8_lossy),
        "record": with_bodies(record),
    })
}

/// The envelope, with the bodies inside.
fn with_bodies(record: &Record<'_>) -> Value {
    let line = record.value.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Ok(mut envelope) = serde_json::from_slice::<Value>(line) else {
        return json!({ "unreadable": String::from_utf8_lossy(line) });
    };
    if record.kind == Kind::Shadow
        && let Ok(read) = ShadowRecord::read(record.value)
    {
        for (part, body) in [("request", read.request_body), ("response", read.response_body)] {
            let Some(Value::Object(part)) = envelope.get_mut(part) else { continue };
            match std::str::from_utf8(body) {
                Ok(text) => part.insert("content".into(), text.into()),
                Err(_) => part.insert("content_base64".into(), base64(body).into()),
            };
        }
    }
    envelope
}

/// RFC 4648 §4: thirty lines here against a dependency.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or_default());
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = word >> (18 - 6 * place) & 63;
            let is_padding = place > group.len();
            text.push(if is_padding { '=' } else { char::from(DIGITS[digit as usize]) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648 §10
    #[test]
    fn base64_has_the_vectors_of_its_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
