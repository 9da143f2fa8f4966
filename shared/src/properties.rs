//! Settings of a Kafka client as files hold them: secrets belong into no command line. Pure.

/// A line that is something else than `name=value`; counted from 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {0} is not of the form name=value")]
pub struct PropertyError(pub usize);

/// Reads lines of `name=value`, each with its number; empty lines and lines that begin with `#` are skipped.
///
/// # Errors
/// At the line that is something else.
pub fn properties(text: &str) -> impl Iterator<Item = Result<(usize, &str, &str), PropertyError>> {
    (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, written)| !written.is_empty() && !written.starts_with('#'))
        .map(|(line, written)| {
            let (name, value) = written.split_once('=').ok_or(PropertyError(line))?;
            let (name, value) = (name.trim(), value.trim());
            if name.is_empty() { Err(PropertyError(line)) } else { Ok((line, name, value)) }
        })
}
