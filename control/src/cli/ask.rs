//! Commands that ask `serve`.

use std::collections::BTreeMap;

use anyhow::Context as _;

use super::{
    ApplyArguments, ExplainArguments, ExportArguments, Failure, RollbackArguments, RulesArguments,
    ServerArguments, files, show,
};
use crate::{
    api::{RollbackRequest, RulesRequest, VersionList},
    client::Client,
    deploy::{Question, Report, Status},
    plan::Plan,
};

pub(super) fn client(arguments: &ServerArguments) -> anyhow::Result<Client> {
    let token = match &arguments.token_file {
        Some(path) => Some(crate::api::read_text(path)?),
        None => std::env::var("SWITCHBOARD_TOKEN").ok().filter(|token| !token.is_empty()),
    };
    Ok(Client::new(&arguments.server, token)?)
}

fn rules(arguments: &RulesArguments) -> anyhow::Result<RulesRequest> {
    Ok(RulesRequest { files: files::read(&arguments.files)?, prune: arguments.prune, wait: true })
}

pub(super) async fn apply(arguments: ApplyArguments) -> Result<(), Failure> {
    let ApplyArguments { rules: arguments, no_wait } = arguments;
    let request = RulesRequest { wait: !no_wait, ..rules(&arguments)? };
    let client = client(&arguments.server)?;
    let report: Report = client.post("/v1/apply", &request).await?;
    print_report(&report, &arguments.server)
}

pub(super) async fn plan(arguments: RulesArguments) -> Result<(), Failure> {
    let request = rules(&arguments)?;
    let plan: Plan = client(&arguments.server)?.post("/v1/plan", &request).await?;
    let text = if arguments.server.json { show::json(&plan)? } else { show::plan(&plan) };
    Ok(show::print(&text)?)
}

pub(super) async fn status(arguments: ServerArguments) -> Result<(), Failure> {
    let status: Status = client(&arguments)?.get("/v1/status").await?;
    let text = if arguments.json { show::json(&status)? } else { show::status(&status) };
    Ok(show::print(&text)?)
}

pub(super) async fn versions(arguments: ServerArguments) -> Result<(), Failure> {
    let list: VersionList = client(&arguments)?.get("/v1/versions").await?;
    let text = if arguments.json { show::json(&list)? } else { show::versions(&list) };
    Ok(show::print(&text)?)
}

pub(super) async fn explain(arguments: ExplainArguments) -> Result<(), Failure> {
    let ExplainArguments { objective, unit, attributes, server } = arguments;
    let attributes: BTreeMap<String, String> = attributes.into_iter().collect();
    let question = Question { objective, unit, attributes };
    let answer: serde_json::Value = client(&server)?.post("/v1/explain", &question).await?;
    let text = if server.json {
        show::json(&answer)?
    } else {
        show::explanation(&answer).context("the server's answer is not what this build reads")?
    };
    Ok(show::print(&text)?)
}

pub(super) async fn rollback(arguments: RollbackArguments) -> Result<(), Failure> {
    let RollbackArguments { version, no_wait, server } = arguments;
    let request = RollbackRequest { version, wait: !no_wait };
    let report: Report = client(&server)?.post("/v1/rollback", &request).await?;
    print_report(&report, &server)
}

pub(super) async fn export(arguments: ExportArguments) -> Result<(), Failure> {
    let path = match arguments.version {
        Some(version) => format!("/v1/export?version={version}"),
        None => "/v1/export".to_owned(),
    };
    let text = client(&arguments.server)?.get_text(&path).await?;
    Ok(show::print(&text)?)
}

fn print_report(report: &Report, server: &ServerArguments) -> Result<(), Failure> {
    let text = if server.json { show::json(report)? } else { show::report(report) };
    Ok(show::print(&text)?)
}
