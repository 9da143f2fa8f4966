//! The request line and header fields of one kind of request.

use super::attributes::{Attribute, Form};
use super::template::Template;
use super::url::Url;

/// What a head is made of.
#[derive(Debug)]
pub struct HeadParts<'a> {
    /// Such as POST.
    pub method: &'a str,
    /// Names the host.
    pub url: &'a Url,
    /// Path and query; may hold places.
    pub path: &'a str,
    /// `name: value` each; the value may hold places.
    pub fields: &'a [String],
    /// Whether the Objective is asked for in `x-switchboard-objective`.
    pub names_objective: bool,
    /// Whether a body follows.
    pub has_body: bool,
}

/// Why there is no head.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeadError {
    /// Would break the head.
    #[error("`{0}` is no header field; write `name: value` on one line")]
    Field(String),
    /// Would break the request line.
    #[error("`{0}` is no method")]
    Method(String),
    /// Would break the request line.
    #[error("`{0}` is no path: it starts with `/` and holds no blanks or control characters")]
    Path(String),
    /// The body's length is told by the generator itself.
    #[error("`{0}` is set by the generator; see --chunked")]
    Own(String),
}

impl HeadParts<'_> {
    /// The head, without the body's length and the empty line.
    ///
    /// # Errors
    /// See [`HeadError`].
    pub fn template(&self, attributes: &[Attribute]) -> Result<Template, HeadError> {
        if self.method.is_empty() || !self.method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(HeadError::Method(self.method.to_owned()));
        }
        let is_broken = |byte: u8| byte.is_ascii_control() || byte == b' ';
        if !self.path.starts_with('/') || self.path.bytes().any(is_broken) {
            return Err(HeadError::Path(self.path.to_owned()));
        }
        let mut head =
            Template::parse(&format!("{} {}", self.method, self.path), attributes, Form::Url);
        let mut fields = " HTTP/1.1\r\n".to_owned();
        let mut named = Vec::new();
        for field in self.fields {
            let refused = || HeadError::Field(field.clone());
            let (name, value) = field.split_once(':').ok_or_else(refused)?;
            let one_line = !value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
            let is_token =
                name.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}()\"".contains(&byte));
            if name.is_empty() || !is_token || !one_line {
                return Err(refused());
            }
            let name = name.to_ascii_lowercase();
            if name == "content-length" || name == "transfer-encoding" {
                return Err(HeadError::Own(name));
            }
            fields.push_str(&format!("{name}: {}\r\n", value.trim()));
            named.push(name);
        }
        let is_missing = |name: &str| !named.iter().any(|given| given == name);
        if is_missing("host") {
            fields.push_str(&format!("host: {}\r\n", self.url.authority));
        }
        if self.has_body && is_missing("content-type") {
            fields.push_str("content-type: application/json\r\n");
        }
        if self.names_objective {
            fields.push_str("x-switchboard-objective: {objective}\r\n");
        }
        head.append(Template::parse(&fields, attributes, Form::Plain));
        Ok(head)
    }
}
