//! How far delivery came, in a file of its own.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::SpoolError;

const NAME: &str = "cursor";
const UNFINISHED: &str = "cursor.unfinished";

/// What a restart has to know.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Cursor {
    /// All records below are delivered, or were given up.
    pub(super) delivered_below: u64,
    /// No record has this number yet.
    pub(super) next_sequence: u64,
}

/// Reads it; one that is missing or garbled is the beginning: then records come twice, and none is lost.
pub(super) fn read(folder: &Path) -> Result<Cursor, SpoolError> {
    let path = folder.join(NAME);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(parse(&text).unwrap_or_default()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {
            Ok(Cursor::default())
        }
        Err(error) => Err(SpoolError::new("read", &path, error)),
    }
}

fn parse(text: &str) -> Option<Cursor> {
    let (delivered_below, next_sequence) = text.strip_suffix('\n')?.split_once(' ')?;
    let cursor = Cursor {
        delivered_below: delivered_below.parse().ok()?,
        next_sequence: next_sequence.parse().ok()?,
    };
    (cursor.delivered_below <= cursor.next_sequence).then_some(cursor)
}

/// Writes it aside and renames it, so that a crash leaves the old one or the new one.
pub(super) fn write(folder: &Path, cursor: Cursor) -> Result<(), SpoolError> {
    let (path, aside) = (folder.join(NAME), folder.join(UNFINISHED));
    let text = format!("{} {}\n", cursor.delivered_below, cursor.next_sequence);
    fs::write(&aside, text).map_err(|error| SpoolError::new("write", &aside, error))?;
    fs::rename(&aside, &path).map_err(|error| SpoolError::new("rename", &aside, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_garbled_cursor_is_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), Cursor::default());
        let cursor = Cursor { delivered_below: 7, next_sequence: 9 };
        write(folder.path(), cursor).unwrap();
        assert_eq!(read(folder.path()).unwrap(), cursor);
        for text in ["", "7 9", "7\n", "9 7\n", "x 9\n", "7 9\n7 9\n"] {
            fs::write(folder.path().join(NAME), text).unwrap();
            assert_eq!(read(folder.path()).unwrap(), Cursor::default(), "{text:?}");
        }
        fs::write(folder.path().join(NAME), b"\xff\xfe").unwrap();
        assert_eq!(read(folder.path()).unwrap(), Cursor::default());
    }
}
