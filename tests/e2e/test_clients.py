"""The clients that people have: curl, requests, httpx and the OpenAI SDK, which know nothing of Switchboard."""

import json
import subprocess

import httpx
import openai
import pytest
import requests

from harness import rules
from harness.stack import Stack
from harness.upstream import Upstream

CHAT = "ANSWER_CHAT"
RANK = "RANK_FEED"
MESSAGES = [{"role": "user", "content": "Where is my parcel?"}]


@pytest.fixture(scope="module", autouse=True)
def upstream(stack: Stack) -> Upstream:
    upstream = stack.start_upstream("mock")
    user_in_body = {"user": {"from": "body:/user", "type": "string"}}
    stack.apply(
        [
            *rules.one_model(RANK, upstream.address),
            rules.model("chat@1", "shard-rank-feed", served_name="chat-small"),
            rules.objective(CHAT, {"only": "chat@1"}, "only", context=user_in_body),
        ]
    )
    return upstream


@pytest.fixture
def client(stack: Stack) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{stack.router.url}/v1", api_key="unused", max_retries=0)


def assert_came_from_the_arm(headers) -> None:
    assert headers["x-switchboard-arm"] == "only"
    assert headers["x-switchboard-objective"] in (RANK, CHAT)


def test_curl_names_the_objective_in_a_header(stack):
    done = subprocess.run(
        [
            "curl", "--silent", "--show-error", "--fail", "--include", "--max-time", "30",
            "--header", f"x-switchboard-objective: {RANK}",
            "--data", '{"k":10}',
            f"{stack.router.url}/v2/models/feed/infer",
        ],
        capture_output=True,
        check=True,
        text=True,
    )  # fmt: skip
    head, _, body = done.stdout.partition("\n\n")
    assert head.startswith("HTTP/1.1 200")
    assert "x-switchboard-arm: only" in head.lower()
    json.loads(body)


def test_curl_names_the_objective_in_the_path(stack):
    command = ["curl", "--silent", "--fail", "--max-time", "30", "--data", '{"k":10}']
    subprocess.run([*command, f"{stack.router.url}/v1/objectives/{RANK}/infer"], check=True, capture_output=True)


def test_requests_reuses_its_connection(stack):
    with requests.Session() as session:
        for number in range(100):
            answer = session.post(
                f"{stack.router.url}/infer",
                json={"number": number},
                headers={"x-switchboard-objective": RANK},
                timeout=30,
            )
            assert answer.status_code == 200
            assert_came_from_the_arm(answer.headers)


def test_httpx_streams_a_body_up(stack):
    pieces = (b'{"k":', b"10", b"}")
    with httpx.Client(timeout=30) as client:
        answer = client.post(
            f"{stack.router.url}/infer", content=iter(pieces), headers={"x-switchboard-objective": RANK}
        )
    assert answer.status_code == 200
    assert_came_from_the_arm(answer.headers)


def test_the_openai_client_gets_a_chat_completion(client):
    raw = client.chat.completions.with_raw_response.create(model=f"objective/{CHAT}", messages=MESSAGES, user="u1")
    assert_came_from_the_arm(raw.headers)
    completion = raw.parse()
    assert completion.choices[0].message.content
    assert completion.model == "chat-small", "the model that really served it"


def test_the_openai_client_streams_tokens(client):
    stream = client.chat.completions.create(model=f"objective/{CHAT}", messages=MESSAGES, user="u1", stream=True)
    texts = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
    words = [text for text in texts if text]
    assert len(words) > 1, "token by token"
    assert_came_from_the_arm(stream.response.headers)


def test_the_openai_client_reports_an_unknown_objective(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="objective/NO_SUCH_GOAL", messages=MESSAGES)
    assert "NO_SUCH_GOAL" in caught.value.response.json()["detail"]
