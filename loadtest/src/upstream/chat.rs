//! Chat completions as OpenAI's clients expect them, whole or streamed. Pure.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::behaviour::Behaviour;

/// What a chat request asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Chat {
    /// Told back in the answer.
    pub model: String,
    /// Server-sent events instead of one JSON document.
    pub stream: bool,
    /// How many tokens the answer has.
    pub tokens: u32,
    /// A last event with the usage, as `stream_options.include_usage` asks.
    pub include_usage: bool,
    /// Unix seconds.
    pub created: u64,
}

/// The members of a chat request that change the answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wanted {
    model: Option<String>,
    stream: Option<bool>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    stream_options: Option<StreamOptions>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: bool,
}

/// Ends a stream.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

impl Chat {
    /// Reads a chat request's body.
    ///
    /// # Errors
    /// What is wrong with the JSON, and where.
    pub fn parse(body: &[u8], behaviour: &Behaviour) -> Result<Self, serde_json::Error> {
        let wanted: Wanted = serde_json::from_slice(body)?;
        let asked = wanted.max_completion_tokens.or(wanted.max_tokens).unwrap_or(u32::MAX);
        Ok(Self {
            model: wanted.model.unwrap_or_default(),
            stream: behaviour.stream || wanted.stream.unwrap_or(false),
            tokens: behaviour.tokens.min(asked),
            include_usage: wanted.stream_options.unwrap_or_default().include_usage,
            created: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs()),
        })
    }

    /// A streamed answer to a request that is no chat request.
    pub fn of_plain(behaviour: &Behaviour) -> Self {
        Self {
            model: String::new(),
            stream: true,
            tokens: behaviour.tokens,
            include_usage: false,
            created: 0,
        }
    }

    /// The answer as one document.
    pub fn whole(&self, name: &str) -> Answer {
        let content: String = (0..self.tokens).map(token).collect();
        let choice = json!({
            "index": 0,
            "message": { "role": "assistant", "content": content },
            "finish_reason": "stop",
        });
        let mut body = self.envelope("chat.completion", name);
        body["choices"] = json!([choice]);
        body["usage"] = self.usage();
        Answer::json(200, &body)
    }

    /// Event `position` of the streamed answer, `data: …` with its empty line; `None` after the
    /// last one. The first tells the role, then one token each, the end, the usage, `[DONE]`.
    pub fn event(&self, position: u32, name: &str) -> Option<Vec<u8>> {
        let delta = |delta: Value, finish: Value| {
            let mut chunk = self.envelope("chat.completion.chunk", name);
            chunk["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
            Some(event(&chunk))
        };
        match position.checked_sub(1) {
            None => delta(json!({ "role": "assistant", "content": "" }), Value::Null),
            Some(index) if index < self.tokens => {
                delta(json!({ "content": token(index) }), Value::Null)
            }
            Some(index) => match (index - self.tokens, self.include_usage) {
                (0, _) => delta(json!({}), json!("stop")),
                (1, true) => {
                    let mut chunk = self.envelope("chat.completion.chunk", name);
                    chunk["choices"] = json!([]);
                    chunk["usage"] = self.usage();
                    Some(event(&chunk))
                }
                (1, false) | (2, true) => Some(DONE.to_vec()),
                _ => None,
            },
        }
    }

    fn envelope(&self, object: &str, name: &str) -> Value {
        json!({
            "id": format!("chatcmpl-{name}"),
            "object": object,
            "created": self.created,
            "model": self.model,
            "model_server": name,
        })
    }

    fn usage(&self) -> Value {
        let tokens = self.tokens;
        json!({ "prompt_tokens": 0, "completion_tokens": tokens, "total_tokens": tokens })
    }
}

/// The answer to `GET /v1/models`.
pub fn models(name: &str) -> Answer {
    let model = json!({ "id": name, "object": "model", "created": 0, "owned_by": "loadtest" });
    Answer::json(200, &json!({ "object": "list", "data": [model] }))
}

fn event(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

fn token(index: u32) -> String {
    format!("t{index} ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat() -> Chat {
        let model = "feed@1".to_owned();
        Chat { model, stream: true, tokens: 2, include_usage: false, created: 1 }
    }

    fn events(chat: &Chat) -> Vec<String> {
        (0..)
            .map_while(|position| chat.event(position, "m"))
            .map(|event| String::from_utf8(event).unwrap())
            .collect()
    }

    #[test]
    fn a_stream_is_role_tokens_end_and_done() {
        let events = events(&chat());
        let deltas: Vec<Value> = events[..4]
            .iter()
            .map(|event| {
                let json = event.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
                serde_json::from_str::<Value>(json).unwrap()["choices"][0].clone()
            })
            .collect();
        assert_eq!(deltas[0]["delta"]["role"], "assistant");
        assert_eq!(deltas[1]["delta"]["content"], "t0 ");
        assert_eq!(deltas[2]["delta"]["content"], "t1 ");
        assert_eq!(deltas[3]["finish_reason"], "stop");
        assert_eq!(events[4], "data: [DONE]\n\n");
        assert_eq!(events.len(), 5);
    }

    #[test]
    fn the_usage_comes_before_done_where_it_was_asked_for() {
        let events = events(&Chat { include_usage: true, ..chat() });
        assert_eq!(events.len(), 6);
        assert!(events[4].contains(r#""completion_tokens":2"#), "{}", events[4]);
        assert_eq!(events[5], "data: [DONE]\n\n");
    }

    #[test]
    fn a_whole_answer_has_all_tokens() {
        let answer = chat().whole("m");
        let value: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(value["choices"][0]["message"]["content"], "t0 t1 ");
        assert_eq!(value["model"], "feed@1");
    }
}
