//! One request's head: what is asked for. Pure.

use std::mem::MaybeUninit;

use httparse::Header;

use crate::http1::framing::{FramingError, Message, of_request};
use crate::limits::HEADERS_MAX;

/// What one request asks for.
#[derive(Debug)]
pub struct Request {
    /// Who answers it.
    pub route: Route,
    /// Whether the answer must have no body.
    pub head_only: bool,
    /// The body's length and the connection's end.
    pub message: Message,
    /// The head as it came, where the route needs it.
    pub head: Vec<u8>,
    /// The `x-request-id`, where it was asked for.
    pub id: Option<Box<[u8]>>,
}

/// Who answers a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Route {
    /// A JSON body of the asked size.
    Plain,
    /// What was received.
    Echo,
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/models`
    Models,
    /// `/v2/models/{name}[/versions/{version}]/infer`
    Infer {
        /// The model's name in the path.
        model: String,
    },
    /// Readiness and liveness probes.
    Ready,
    /// `GET /__control/stats`
    Stats,
    /// `GET /__control/behaviour`
    Behaviour,
    /// `POST /__control/behaviour`
    SetBehaviour,
    /// `POST /__control/reset`
    Reset,
    /// Anything else under `/__control/`.
    Unknown,
}

/// Why a head is no request.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Not HTTP.
    #[error("malformed head: {0}")]
    Head(#[from] httparse::Error),
    /// Its body has no clear end.
    #[error(transparent)]
    Framing(#[from] FramingError),
}

/// What a caller wants to keep of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Keep {
    /// Only what the answer needs.
    Least,
    /// The `x-request-id` too.
    Id,
}

impl Request {
    /// Reads one head from the start of `input`; `None` until it is whole. Returns the request and
    /// the head's length.
    ///
    /// # Errors
    /// Both are final: the connection must be closed.
    pub fn parse(input: &[u8], keep: Keep) -> Result<Option<(Self, usize)>, RequestError> {
        let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut []);
        let length = match request.parse_with_uninit_headers(input, &mut headers)? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial => return Ok(None),
        };
        let (Some(method), Some(target), Some(minor)) =
            (request.method, request.path, request.version)
        else {
            return Err(RequestError::Head(httparse::Error::Token));
        };
        let message = of_request(minor, request.headers)?;
        let route = Route::of(method, target, request.headers);
        let head = if route == Route::Echo { input[..length].to_vec() } else { Vec::new() };
        let id = match keep {
            Keep::Id => field(request.headers, "x-request-id").map(Box::from),
            Keep::Least => None,
        };
        Ok(Some((Self { route, head_only: method == "HEAD", message, head, id }, length)))
    }
}

impl Route {
    fn of(method: &str, target: &str, headers: &[Header<'_>]) -> Self {
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        match path {
            "/__control/stats" => Self::Stats,
            "/__control/behaviour" if method == "GET" => Self::Behaviour,
            "/__control/behaviour" if method == "POST" => Self::SetBehaviour,
            "/__control/reset" if method == "POST" => Self::Reset,
            _ if path.starts_with("/__control/") => Self::Unknown,
            _ if path == "/echo" || field(headers, "x-echo").is_some() => Self::Echo,
            "/v1/chat/completions" => Self::Chat,
            "/v1/models" => Self::Models,
            "/healthz" | "/v2/health/ready" | "/v2/health/live" => Self::Ready,
            _ => match path.strip_prefix("/v2/models/").map(|rest| rest.split_once('/')) {
                Some(Some((_, rest))) if rest == "ready" || rest.ends_with("/ready") => Self::Ready,
                Some(Some((model, rest))) if rest == "infer" || rest.ends_with("/infer") => {
                    Self::Infer { model: model.to_owned() }
                }
                _ => Self::Plain,
            },
        }
    }

    /// Whether it is asked for by people and tests, not by the traffic that is measured: never
    /// counted, delayed or harmed.
    pub fn is_control(&self) -> bool {
        match self {
            Self::Stats | Self::Behaviour | Self::SetBehaviour | Self::Reset | Self::Unknown => {
                true
            }
            Self::Ready => true,
            Self::Plain | Self::Echo | Self::Chat | Self::Models | Self::Infer { .. } => false,
        }
    }

    /// Whether the answer depends on the body's bytes.
    pub fn needs_body(&self) -> bool {
        matches!(self, Self::Echo | Self::Chat | Self::SetBehaviour)
    }
}

/// The value of the first field of this name (written in lower case).
fn field<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a [u8]> {
    headers
        .iter()
        .find(|header| header.name.len() == name.len() && header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::framing::Framing;

    fn route(method: &str, target: &str) -> Route {
        Route::of(method, target, &[])
    }

    #[test]
    fn each_path_has_its_route() {
        assert_eq!(route("POST", "/anything?x=1"), Route::Plain);
        assert_eq!(route("POST", "/v1/chat/completions"), Route::Chat);
        assert_eq!(route("GET", "/v2/health/ready"), Route::Ready);
        assert_eq!(route("GET", "/v2/models/feed/versions/2/ready"), Route::Ready);
        for target in ["/v2/models/feed/infer", "/v2/models/feed/versions/2/infer"] {
            assert_eq!(route("POST", target), Route::Infer { model: "feed".to_owned() });
        }
        assert_eq!(route("GET", "/__control/behaviour"), Route::Behaviour);
        assert_eq!(route("POST", "/__control/behaviour"), Route::SetBehaviour);
        assert_eq!(route("GET", "/__control/reset"), Route::Unknown);
    }

    #[test]
    fn an_echo_is_asked_for_by_path_or_header() {
        let header = Header { name: "X-Echo", value: b"1" };
        assert_eq!(route("POST", "/echo?a=b"), Route::Echo);
        assert_eq!(Route::of("POST", "/v1/chat/completions", &[header]), Route::Echo);
    }

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let input = b"HEAD /x HTTP/1.1\r\nX-Request-Id: r7\r\ncontent-length: 3\r\n\r\nabc";
        for end in 0..input.len() - 3 {
            assert!(Request::parse(&input[..end], Keep::Id).unwrap().is_none(), "{end}");
        }
        let (request, length) = Request::parse(input, Keep::Id).unwrap().unwrap();
        assert_eq!(length, input.len() - 3);
        assert!(request.head_only);
        assert_eq!(request.message.framing, Framing::Length(3));
        assert_eq!(request.id.as_deref(), Some(&b"r7"[..]));
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert!(matches!(Request::parse(b"\x16\x03\x01", Keep::Least), Err(RequestError::Head(_))));
        let smuggled =
            b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n";
        assert!(matches!(
            Request::parse(smuggled, Keep::Least),
            Err(RequestError::Framing(FramingError::Ambiguous))
        ));
    }
}
