//! The one line of `current`: which Snapshot is active, as `1 VERSION DIGEST`.

use std::io;

use super::{Digest, SnapshotId, SnapshotVersion};

/// Grows with the form of the line.
const FORM: &str = "1";

/// Why the line tells nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum CurrentError {
    #[error("cannot read it")]
    Read(#[from] io::Error),
    #[error("expected one line: {FORM}, a version and 64 hex digits")]
    Form,
}

pub(super) fn to_text(id: SnapshotId) -> String {
    format!("{FORM} {} {}\n", id.version, id.digest)
}

pub(super) fn parse(text: &[u8]) -> Result<SnapshotId, CurrentError> {
    let line = std::str::from_utf8(text).ok().and_then(|text| text.strip_suffix('\n'));
    let fields: Vec<&str> = line.ok_or(CurrentError::Form)?.split(' ').collect();
    let [FORM, version, digest] = fields[..] else { return Err(CurrentError::Form) };
    let version = version.parse().ok().and_then(SnapshotVersion::new);
    let digest = parse_digest(digest.as_bytes());
    match (version, digest) {
        (Some(version), Some(digest)) => Ok(SnapshotId { version, digest }),
        _ => Err(CurrentError::Form),
    }
}

fn parse_digest(digits: &[u8]) -> Option<Digest> {
    let mut bytes = [0; 32];
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(Digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> SnapshotId {
        SnapshotId { version: crate::samples::version(12), digest: Digest([0xa5; 32]) }
    }

    #[test]
    fn the_line_reads_back() {
        let text = to_text(id());
        assert_eq!(text, format!("1 12 {}\n", "a5".repeat(32)));
        assert_eq!(parse(text.as_bytes()).unwrap(), id());
    }

    #[test]
    fn any_cut_or_foreign_line_tells_nothing() {
        let text = to_text(id());
        for length in 0..text.len() {
            assert!(parse(&text.as_bytes()[..length]).is_err(), "{length}");
        }
        for bad in [
            text.replace("1 12", "2 12"),
            text.replace(" 12 ", " 0 "),
            text.replace(" 12 ", " -12 "),
            text.replacen("a5", "+5", 1),
            text.replacen("a5", "é", 1),
            text.replacen('\n', " \n", 1),
            format!("{text}{text}"),
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(parse(&[0xff; 20]).is_err());
    }
}
