//! Answers of the control endpoints and the readiness probe: changes while it runs.

use serde_json::json;

use super::answer::Answer;
use super::echo::Received;
use super::model::Model;
use super::request::Route;

/// Carries out a control request and answers it; `None` where the route is none.
pub fn control(model: &Model, route: &Route, body: &Received) -> Option<Answer> {
    match route {
        Route::Stats => Some(serialised(&model.stats())),
        Route::Behaviour => Some(serialised(&model.behaviour())),
        Route::SetBehaviour if body.is_truncated() => {
            Some(Answer::problem(413, "a behaviour is a small JSON object"))
        }
        Route::SetBehaviour => Some(match model.change(&body.kept) {
            Ok(behaviour) => serialised(&behaviour),
            Err(error) => Answer::problem(400, &chain(&error)),
        }),
        Route::Reset => {
            model.reset();
            Some(serialised(&model.behaviour()))
        }
        Route::Unknown => Some(Answer::problem(
            404,
            "there are GET stats, GET and POST behaviour, and POST reset under /__control/",
        )),
        Route::Ready if model.behaviour().unready => {
            Some(Answer::problem(503, "told to be unready"))
        }
        Route::Ready => {
            Some(Answer::json(200, &json!({ "model_server": model.name, "ready": true })))
        }
        Route::Plain | Route::Echo | Route::Chat | Route::Models | Route::Infer { .. } => None,
    }
}

fn serialised(value: &impl serde::Serialize) -> Answer {
    match serde_json::to_value(value) {
        Ok(value) => Answer::json(200, &value),
        Err(error) => Answer::problem(500, &error.to_string()),
    }
}

/// An error with its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
