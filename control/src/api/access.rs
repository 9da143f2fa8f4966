//! Who may do what.

use std::{
    fs,
    io::{self, Write as _},
    net::{IpAddr, SocketAddr},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use axum::{
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};
use utoipa::{
    Modify,
    openapi::{
        OpenApi,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{Shared, problem::Problem};

/// Shortest token: below that, guessing pays.
const TOKEN_BYTES_MIN: usize = 16;
/// Longest token file.
const TOKEN_BYTES_MAX: usize = 4_096;

/// The bearer token, as a hash: comparing it takes the same time whatever was guessed.
#[derive(Clone, Debug)]
pub struct Token(blake3::Hash);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("cannot use the token file {path}")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its content is no token.
    #[error(
        "the token in {path} has {bytes} bytes; {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} visible \
         ASCII characters are needed"
    )]
    Shape {
        /// Which file.
        path: PathBuf,
        /// How long it is.
        bytes: usize,
    },
    /// The operating system has no randomness.
    #[error("no randomness for a token")]
    Randomness(#[source] getrandom::Error),
}

impl Token {
    /// Reads the token of a file.
    ///
    /// # Errors
    /// `File`, `Shape`.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        read_text(path).map(|text| Self::of(&text))
    }

    /// The same, or makes one in a file of mode 0600 where there is none. Returns whether it did.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn read_or_make(path: &Path) -> Result<(Self, bool), TokenError> {
        let file_error = |source| TokenError::File { path: path.to_owned(), source };
        let mut options = fs::OpenOptions::new();
        let made = options.write(true).create_new(true).mode(0o600).open(path);
        let mut file = match made {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Self::read(path).map(|token| (token, false));
            }
            Err(error) => return Err(file_error(error)),
        };
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(TokenError::Randomness)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        file.write_all(format!("{text}\n").as_bytes()).map_err(file_error)?;
        Ok((Self::of(&text), true))
    }

    fn of(text: &str) -> Self {
        Self(blake3::hash(text.as_bytes()))
    }

    /// In constant time.
    fn is(&self, given: &str) -> bool {
        self.0 == blake3::hash(given.as_bytes())
    }
}

/// The text of a token file: one line, as it goes into an `authorization` header.
///
/// # Errors
/// `File`, `Shape`.
pub(crate) fn read_text(path: &Path) -> Result<String, TokenError> {
    let text = fs::read_to_string(path)
        .map_err(|source| TokenError::File { path: path.to_owned(), source })?;
    let text = text.trim();
    let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
    if visible && (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(TokenError::Shape { path: path.to_owned(), bytes: text.len() })
    }
}

/// Lets a change through only with the token.
pub(super) async fn for_writes(
    State(shared): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    check_token(&shared.token, request.headers())?;
    Ok(next.run(request).await)
}

/// Lets a question through with the token, or without one from this host.
pub(super) async fn for_reads(
    State(shared): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let headers = request.headers();
    let local = peer.ip().to_canonical().is_loopback() && names_loopback(headers);
    if !local || headers.contains_key(header::AUTHORIZATION) {
        check_token(&shared.token, headers)?;
    }
    Ok(next.run(request).await)
}

fn check_token(token: &Token, headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::AUTHORIZATION).ok_or_else(Problem::token_missing)?;
    let given = given.to_str().ok().and_then(|text| text.split_once(' '));
    match given {
        Some((scheme, given))
            if scheme.eq_ignore_ascii_case("bearer") && token.is(given.trim()) =>
        {
            Ok(())
        }
        Some(_) | None => Err(Problem::token_wrong()),
    }
}

/// A page of another site that a browser was made to send here names that site.
fn names_loopback(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else {
        return false;
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Tells the document's readers how to authenticate.
pub(super) struct BearerScheme;

impl Modify for BearerScheme {
    fn modify(&self, document: &mut OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("Writes always need it; reads need it from other hosts."));
        if let Some(components) = document.components.as_mut() {
            components.add_security_scheme("token", SecurityScheme::Http(scheme.build()));
        }
    }
}
