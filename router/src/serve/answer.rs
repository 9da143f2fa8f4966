//! The router's own answers: problem details (RFC 9457), and nothing that a client could have put there.

use std::cell::RefCell;
use std::io::Write as _;

use super::fault::{Fault, Whose};
use crate::counters::ResponseClass;
use crate::http1::write::{self, LocalResponse};
use crate::http1::{AnswerBody, AnswerEnd, Fields, Next, ServerConnection};
use crate::net::buffer::Buffer;
use crate::net::stream::Writer;
use crate::worker::Worker;
use crate::worker::link::Link;

/// Where an answer goes, and the state machine that frames it.
pub struct Answering<'a, 'server> {
    /// To the client.
    pub writer: &'a mut Writer,
    /// The client's link.
    pub link: &'a Link,
    /// The connection's state; shared with a body that still comes in.
    pub server: &'a RefCell<&'server mut ServerConnection>,
    /// Space for header lines.
    pub fields: &'a mut Fields,
}

/// Answers with a problem. `subject`: the object of the Snapshot that it is about.
pub async fn problem(
    worker: &Worker,
    answering: Answering<'_, '_>,
    fault: &Fault,
    subject: Option<&str>,
) -> Next {
    let Answering { writer, link, server, fields } = answering;
    count(worker, fault);
    if matches!(fault, Fault::ClientLeft) {
        return Next::Close;
    }
    let mut body = worker.buffers.take();
    write_problem(&mut body, fault, subject);
    fields.clear();
    if let Some(span) = fault.retry_after() {
        fields.push_number("retry-after", span.as_secs().max(1));
    }
    let length = u64::try_from(body.len()).unwrap_or(u64::MAX);
    let answer = server.borrow_mut().begin_answer(AnswerBody::Length(length));
    let mut output = worker.buffers.take();
    let response = LocalResponse {
        status: fault.status(),
        content_type: "application/problem+json",
        body: body.filled(),
        fields,
    };
    write::local_response(output.tail(), &response, &answer);
    worker.buffers.put_back(body);
    link.watch_write(worker.tick(), worker.config.clocks.response_idle);
    let (result, output) = writer.write_all(output).await;
    link.unwatch_write();
    worker.buffers.put_back(output);
    let end = if result.is_ok() { AnswerEnd::Whole } else { AnswerEnd::Cut };
    server.borrow_mut().finish_answer(end)
}

/// Tells the client that waits for it to send its body (MS-01).
///
/// # Errors
/// The client is gone.
pub async fn go_on(worker: &Worker, writer: &mut Writer) -> Result<(), Fault> {
    let mut output = worker.buffers.take();
    output.extend(write::CONTINUE);
    let (result, output) = writer.write_all(output).await;
    worker.buffers.put_back(output);
    result.map_err(|_| Fault::ClientLeft)
}

fn count(worker: &Worker, fault: &Fault) {
    let counters = &worker.counters;
    match fault {
        Fault::NoSnapshot => counters.without_snapshot.add(1),
        Fault::ObjectiveUnknown(_) | Fault::ObjectiveMissing => counters.unknown_objective.add(1),
        Fault::ClientLeft => counters.client_closed.add(1),
        _ if fault.whose() == Whose::Client => counters.bad_requests.add(fault.reason(), 1),
        _ => {}
    }
    if !matches!(fault, Fault::ClientLeft) {
        counters.responses.add(ResponseClass::of(fault.status()), 1);
    }
}

fn write_problem(body: &mut Buffer, fault: &Fault, subject: Option<&str>) {
    let out = body.tail();
    let status = fault.status();
    // Writing into a vector cannot fail, and none of the texts needs escaping: they are ours, or names
    // whose syntax was checked when the Snapshot was opened.
    let _infallible = write!(
        out,
        "{{\"type\":\"about:blank\",\"title\":\"{}\",\"status\":{status},\"reason\":\"{}\",\"detail\":\"",
        write::reason_phrase(status),
        fault.reason(),
    );
    let _infallible = match subject {
        Some(subject) => writeln!(out, "{subject}: {fault}\"}}"),
        None => writeln!(out, "{fault}\"}}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::json::JsonError;

    #[test]
    fn a_problem_is_json_and_names_the_byte() {
        let fault = Fault::from(JsonError::Malformed { offset: 17 });
        let mut body = Buffer::default();
        write_problem(&mut body, &fault, Some("RECOMMEND_HOME_FEED"));
        let problem: serde_json::Value = serde_json::from_slice(body.filled()).unwrap();
        assert_eq!(problem["status"], 400);
        assert_eq!(problem["reason"], "json_malformed");
        assert_eq!(problem["detail"], "RECOMMEND_HOME_FEED: the body is not JSON at byte 17");
    }
}
