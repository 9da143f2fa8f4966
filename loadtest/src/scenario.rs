//! What is sent: which requests, for which users, in which mix. Pure once it is made.

pub mod arguments;
pub mod attributes;
pub mod body;
pub mod file;
pub mod head;
pub mod size;
pub mod template;
pub mod url;
pub mod users;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use self::attributes::Attribute;
use self::body::Body;
use self::template::{Template, Values};
use self::users::{UserDraw, Users};
use crate::generator::Checks;
use crate::http1::framing::Asked;

/// Everything that one run sends. Shared by its threads.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// At least one; each request is one of them.
    pub requests: Vec<RequestTemplate>,
    /// Whom requests are sent for.
    pub users: Users,
    /// What templates may name besides user, number and Objective.
    pub attributes: Vec<Attribute>,
    /// Makes the draws repeatable.
    pub seed: u64,
}

/// One kind of request.
#[derive(Clone, Debug)]
pub struct RequestTemplate {
    /// Its share of the mix, relative to the others.
    pub weight: u32,
    /// The Objective that it asks for, if any.
    pub objective: Option<String>,
    /// Request line and header fields; the body's length and the empty line are added.
    pub head: Template,
    /// What follows the head.
    pub body: Body,
    /// How the body's length is told.
    pub body_coding: BodyCoding,
    /// What its method asks for.
    pub asked: Asked,
    /// What its answers must hold, where that is another thing than for the rest.
    pub checks: Option<Checks>,
}

/// How a request's body is framed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyCoding {
    /// GET and HEAD: no body, no length.
    None,
    /// Content-Length.
    Length,
    /// Two chunks, or one where the body has only one byte.
    Chunked,
}

/// One thread's draws from a scenario.
#[derive(Debug)]
pub struct Draws {
    random: Xoshiro256PlusPlus,
    users: UserDraw,
    weights_sum: u64,
    body: Vec<u8>,
    user: String,
    drawn: Vec<usize>,
}

/// Which request was rendered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Drawn {
    /// Position in [`Scenario::requests`].
    pub request: usize,
    /// The user's number.
    pub user: u64,
}

impl Draws {
    /// The draws of thread `thread`.
    pub fn new(scenario: &Scenario, thread: usize) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(scenario.seed.wrapping_add(thread as u64)),
            users: scenario.users.draw(),
            weights_sum: scenario.requests.iter().map(|request| u64::from(request.weight)).sum(),
            body: Vec::new(),
            user: String::new(),
            drawn: Vec::new(),
        }
    }

    /// Appends request `number` of the run to `wire`.
    pub fn render(&mut self, scenario: &Scenario, number: u64, wire: &mut Vec<u8>) -> Drawn {
        let position = self.choose(scenario);
        let request = &scenario.requests[position];
        let user = self.users.next(number, &mut self.random);
        users::name(user, &mut self.user);
        let objective = request.objective.as_deref().unwrap_or_default();
        self.drawn.clear();
        for attribute in &scenario.attributes {
            self.drawn.push(attribute.draw(user, scenario.seed, &mut self.random));
        }
        let values = Values {
            user: &self.user,
            number,
            objective,
            attributes: &scenario.attributes,
            drawn: &self.drawn,
            padding: 0,
        };
        request.head.render(&values, wire);
        match request.body_coding {
            BodyCoding::None => wire.extend_from_slice(b"\r\n"),
            BodyCoding::Length => {
                self.body.clear();
                request.body.render(&values, &mut self.random, &mut self.body);
                wire.extend_from_slice(b"content-length: ");
                wire.extend_from_slice(itoa::Buffer::new().format(self.body.len()).as_bytes());
                wire.extend_from_slice(b"\r\n\r\n");
                wire.extend_from_slice(&self.body);
            }
            BodyCoding::Chunked => {
                self.body.clear();
                request.body.render(&values, &mut self.random, &mut self.body);
                wire.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                let (first, second) = self.body.split_at(self.body.len() / 2);
                for piece in [first, second].into_iter().filter(|piece| !piece.is_empty()) {
                    wire.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                    wire.extend_from_slice(piece);
                    wire.extend_from_slice(b"\r\n");
                }
                wire.extend_from_slice(b"0\r\n\r\n");
            }
        }
        Drawn { request: position, user }
    }

    fn choose(&mut self, scenario: &Scenario) -> usize {
        if scenario.requests.len() == 1 {
            return 0;
        }
        let mut draw = self.random.random_range(0..self.weights_sum);
        for (position, request) in scenario.requests.iter().enumerate() {
            match draw.checked_sub(u64::from(request.weight)) {
                Some(rest) => draw = rest,
                None => return position,
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::attributes::Form;
    use super::*;
    use crate::scenario::users::Choice;

    fn scenario(requests: Vec<RequestTemplate>) -> Scenario {
        let users = Users { count: 10, choice: Choice::Sequence };
        Scenario { requests, users, attributes: Vec::new(), seed: 1 }
    }

    fn request(weight: u32, body_coding: BodyCoding) -> RequestTemplate {
        RequestTemplate {
            weight,
            objective: Some("HOME".to_owned()),
            head: Template::parse("POST /{n} HTTP/1.1\r\nuser: {user}\r\n", &[], Form::Plain),
            body: Body::Template(Template::parse("{\"o\":\"{objective}\"}", &[], Form::Json)),
            body_coding,
            asked: Asked::Whole,
            checks: None,
        }
    }

    fn rendered(body_coding: BodyCoding) -> String {
        let scenario = scenario(vec![request(1, body_coding)]);
        let mut wire = Vec::new();
        Draws::new(&scenario, 0).render(&scenario, 13, &mut wire);
        String::from_utf8(wire).unwrap()
    }

    #[test]
    fn a_request_is_its_templates_with_the_bodys_length() {
        let head = "POST /13 HTTP/1.1\r\nuser: u3\r\n";
        let body = r#"{"o":"HOME"}"#;
        let length = format!("{head}content-length: 12\r\n\r\n{body}");
        assert_eq!(rendered(BodyCoding::Length), length);
        assert_eq!(rendered(BodyCoding::None), format!("{head}\r\n"));
        let chunked =
            "transfer-encoding: chunked\r\n\r\n6\r\n{\"o\":\"\r\n6\r\nHOME\"}\r\n0\r\n\r\n";
        assert_eq!(rendered(BodyCoding::Chunked), format!("{head}{chunked}"));
    }

    #[test]
    fn requests_are_mixed_by_their_weights() {
        let none = BodyCoding::None;
        let scenario = scenario(vec![request(3, none), request(0, none), request(1, none)]);
        let mut draws = Draws::new(&scenario, 0);
        let mut counts = [0_u32; 3];
        for number in 0..10_000 {
            counts[draws.render(&scenario, number, &mut Vec::new()).request] += 1;
        }
        // Four standard deviations are 173.
        assert!((7327..=7673).contains(&counts[0]), "{counts:?}");
        assert_eq!(counts[1], 0);
    }
}
