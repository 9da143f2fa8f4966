//! What follows a head: a template, a body of drawn size, or recorded ones.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use super::size::Size;
use super::template::{Template, Values};
use crate::limits::{BODIES_BYTES_MAX, REQUEST_BODY_BYTES_MAX};

/// The bodies of one kind of request.
#[derive(Clone, Debug)]
pub enum Body {
    /// The same text, with its places filled.
    Template(Template),
    /// A text that is filled up at its `{padding}` until it has the drawn size. A text that is
    /// longer without any padding stays as it is.
    Sized {
        /// Has a place for padding.
        template: Template,
        /// How long it gets.
        size: Size,
    },
    /// One of these, as it was recorded.
    Recorded {
        /// At least one; shared by the threads.
        bodies: Arc<[Box<[u8]>]>,
        /// Which one comes next.
        order: Order,
    },
}

/// Which recorded body comes next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By the request's number, and from the start again.
    #[default]
    Sequence,
    /// Each with the same probability.
    Random,
}

/// Why there are no recorded bodies.
#[derive(Debug, thiserror::Error)]
pub enum BodiesError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Which one.
        path: PathBuf,
        /// What the host says.
        #[source]
        source: io::Error,
    },
    /// A line that is no JSON.
    #[error("{path}, line {line}")]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A line without the member that was asked for.
    #[error("{path}, line {line}: there is nothing at `{pointer}`")]
    Member {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// A JSON pointer.
        pointer: String,
    },
    /// All of them are kept in memory.
    #[error("the bodies in {0} are longer than {BODIES_BYTES_MAX} bytes together")]
    TooLong(PathBuf),
    /// Nothing could be sent.
    #[error("{0} holds no body")]
    None(PathBuf),
}

impl Body {
    /// Appends the body of request `values.number`.
    pub fn render(&self, values: &Values<'_>, random: &mut Xoshiro256PlusPlus, out: &mut Vec<u8>) {
        match self {
            Self::Template(template) => template.render(values, out),
            Self::Sized { template, size } => {
                let start = out.len();
                template.render(&Values { padding: 0, ..*values }, out);
                let wanted = size.draw(random).min(REQUEST_BODY_BYTES_MAX);
                let padding = wanted.saturating_sub(out.len() - start);
                if padding > 0 {
                    out.truncate(start);
                    template.render(&Values { padding, ..*values }, out);
                }
            }
            Self::Recorded { bodies, order } => {
                let position = match order {
                    Order::Sequence => {
                        usize::try_from(values.number % bodies.len() as u64).unwrap_or_default()
                    }
                    Order::Random => random.random_range(0..bodies.len()),
                };
                out.extend_from_slice(&bodies[position]);
            }
        }
    }
}

/// Reads bodies from a file with one JSON text per line. Each body is its line, byte for byte, or
/// what stands at `pointer` (RFC 6901) in it: a string's text, anything else as JSON.
///
/// # Errors
/// See [`BodiesError`].
pub fn read_bodies(path: &Path, pointer: Option<&str>) -> Result<Arc<[Box<[u8]>]>, BodiesError> {
    let failed = |source| BodiesError::Read { path: path.to_owned(), source };
    let file = BufReader::new(File::open(path).map_err(failed)?);
    let mut bodies: Vec<Box<[u8]>> = Vec::new();
    let mut bytes = 0;
    for (position, text) in file.lines().enumerate() {
        let text = text.map_err(failed)?;
        if text.trim().is_empty() {
            continue;
        }
        let line = position + 1;
        let value: serde_json::Value = serde_json::from_str(&text)
            .map_err(|source| BodiesError::Line { path: path.to_owned(), line, source })?;
        let body = match pointer {
            None => text.into_bytes(),
            Some(pointer) => match value.pointer(pointer) {
                Some(serde_json::Value::String(text)) => text.clone().into_bytes(),
                Some(value) => value.to_string().into_bytes(),
                None => {
                    let (path, pointer) = (path.to_owned(), pointer.to_owned());
                    return Err(BodiesError::Member { path, line, pointer });
                }
            },
        };
        bytes += body.len();
        if bytes > BODIES_BYTES_MAX {
            return Err(BodiesError::TooLong(path.to_owned()));
        }
        bodies.push(body.into());
    }
    if bodies.is_empty() {
        return Err(BodiesError::None(path.to_owned()));
    }
    Ok(bodies.into())
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::super::attributes::Form;
    use super::*;

    fn render(body: &Body, number: u64) -> String {
        let values =
            Values { user: "u1", number, objective: "", attributes: &[], drawn: &[], padding: 0 };
        let mut out = Vec::new();
        body.render(&values, &mut Xoshiro256PlusPlus::seed_from_u64(number), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_sized_body_has_exactly_the_drawn_size_unless_its_text_is_longer() {
        let template = Template::parse(r#"{"u":"{user}","p":"{padding}"}"#, &[], Form::Json);
        let of =
            |size: &str| Body::Sized { template: template.clone(), size: size.parse().unwrap() };
        assert_eq!(render(&of("22"), 0), r#"{"u":"u1","p":"xxxxx"}"#);
        assert_eq!(render(&of("3"), 0), r#"{"u":"u1","p":""}"#);
        for number in 0..50 {
            assert!((100..=120).contains(&render(&of("uniform:100,120"), number).len()));
        }
    }

    #[test]
    fn recorded_bodies_come_byte_for_byte_in_turn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bodies.jsonl");
        std::fs::write(&path, "{ \"a\" : \"ä\" }\n\n{\"a\":{\"b\":2}}\n").unwrap();
        let whole =
            Body::Recorded { bodies: read_bodies(&path, None).unwrap(), order: Order::Sequence };
        assert_eq!(
            [0, 1, 2].map(|number| render(&whole, number)),
            ["{ \"a\" : \"ä\" }", "{\"a\":{\"b\":2}}", "{ \"a\" : \"ä\" }"]
        );
        let members = read_bodies(&path, Some("/a")).unwrap();
        assert_eq!((&*members[0], &*members[1]), ("ä".as_bytes(), &b"{\"b\":2}"[..]));
        let random = Body::Recorded { bodies: members, order: Order::Random };
        assert!((0..20).any(|number| render(&random, number) == "ä"));
    }

    #[test]
    fn a_file_without_bodies_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bodies.jsonl");
        std::fs::write(&path, "{}\nno json\n").unwrap();
        assert!(matches!(read_bodies(&path, None), Err(BodiesError::Line { line: 2, .. })));
        assert!(matches!(read_bodies(&path, Some("/a")), Err(BodiesError::Member { line: 1, .. })));
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(read_bodies(&path, None), Err(BodiesError::None(_))));
        let none = folder.path().join("none");
        assert!(matches!(read_bodies(&none, None), Err(BodiesError::Read { .. })));
    }
}
