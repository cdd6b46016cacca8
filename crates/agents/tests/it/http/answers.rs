//! What is asked, and what is read.

use std::time::Duration;

use fanfold::{AgentRequest, AgentType, Answer, CancellationToken, Subagents as _, Usage, Usd};
use fanfold_agents::{Anthropic, OpenAi};
use serde_json::json;

use super::server::{Act, Api, BOTH, Server};
use super::{KEY, ask, failure, run, start};

#[tokio::test]
async fn the_pieces_of_an_answer_are_put_together_and_counted() {
    for api in BOTH {
        let server = Server::new([Act::Stream(api.says(&["Hel", "lo, \u{1f30d}", "\n"]))]).await;
        let child = start(api, &server, AgentRequest::new("prompt"), CancellationToken::new()).await;
        assert_eq!(child.id, format!("{}-1", if api == Api::OpenAi { "openai" } else { "anthropic" }));
        assert_eq!(child.result.await, Ok(Answer::text("Hello, \u{1f30d}\n")));
        assert_eq!(child.meter.total(), Some(api.usage()));
    }
}

#[tokio::test]
async fn reasoning_in_a_text_is_no_part_of_it() {
    for api in BOTH {
        let server = Server::new([Act::Stream(api.says(&["<thi", "nk>so", "</think>\n", "It is 4."]))]).await;
        assert_eq!(ask(api, &server).await, Ok(Answer::text("It is 4.")));
        let server = Server::new([Act::Stream(api.says(&["<think>so</think>\n"]))]).await;
        let (_, reason) = failure(ask(api, &server).await);
        assert!(reason.contains("reasoning came, 2 characters of it"), "{reason}");
    }
}

#[tokio::test]
async fn openai_is_asked_in_its_way() {
    let server = Server::new([Act::Stream(Api::OpenAi.says(&["a"]))]).await;
    ask(Api::OpenAi, &server).await.unwrap();
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1/chat/completions");
    assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
    let expected = json!({
        "model": "m", "messages": [{"role": "user", "content": "prompt"}],
        "stream": true, "stream_options": {"include_usage": true},
    });
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn anthropic_is_asked_in_its_way() {
    let server = Server::new([Act::Stream(Api::Anthropic.says(&["a"]))]).await;
    ask(Api::Anthropic, &server).await.unwrap();
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1/messages");
    assert_eq!(asked.headers["x-api-key"], KEY);
    assert_eq!(asked.headers["anthropic-version"], "2023-06-01");
    let expected = json!({
        "model": "m", "max_tokens": 16384, "messages": [{"role": "user", "content": "prompt"}], "stream": true,
    });
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn options_reach_the_api() {
    let mut request = AgentRequest::new("prompt");
    request.options.model = Some("other".into());
    request.options.effort = Some("high".into());

    let server = Server::new([Act::Stream(Api::OpenAi.says(&["a"]))]).await;
    let agents = OpenAi::new(&server.url(), None).unwrap().honours_effort().max_tokens(99);
    assert!(agents.supports().effort);
    agents.start(request.clone(), CancellationToken::new()).await.unwrap().result.await.unwrap();
    let asked = &server.asked()[0];
    assert_eq!((&asked.body["model"], &asked.body["reasoning_effort"]), (&json!("other"), &json!("high")));
    assert_eq!(asked.body["max_completion_tokens"], 99);
    assert!(!asked.headers.contains_key("authorization"));

    let server = Server::new([Act::Stream(Api::Anthropic.says(&["a"]))]).await;
    let agents = Anthropic::new(&server.url(), None).unwrap().honours_effort().max_tokens(99);
    agents.start(request, CancellationToken::new()).await.unwrap().result.await.unwrap();
    let body = &server.asked()[0].body;
    assert_eq!((&body["model"], &body["output_config"]), (&json!("other"), &json!({"effort": "high"})));
    assert_eq!(body["max_tokens"], 99);
}

#[tokio::test]
async fn the_instructions_of_a_kind_of_agent_are_the_system_prompt() {
    for api in BOTH {
        for instructions in ["Be strict.", ""] {
            let mut request = AgentRequest::new("prompt");
            request.options.agent_type = Some("reviewer".into());
            request.options.definition = Some(AgentType::new("reviewer", instructions).into());
            let server = Server::new([Act::Stream(api.says(&["a"]))]).await;
            assert!(super::provider(api, &server.url()).supports().instructions);
            run(api, &server, request).await.unwrap();
            let body = &server.asked()[0].body;
            let user = json!({"role": "user", "content": "prompt"});
            let told = !instructions.is_empty();
            let expected = match api {
                Api::OpenAi if told => {
                    (json!([{"role": "system", "content": instructions}, user]), json!(null))
                }
                Api::Anthropic if told => (json!([user]), json!(instructions)),
                _ => (json!([user]), json!(null)),
            };
            assert_eq!((&body["messages"], &body["system"]), (&expected.0, &expected.1));
        }
    }
}

#[tokio::test]
async fn without_a_model_nothing_starts() {
    let agents = OpenAi::new("http://127.0.0.1:1", None).unwrap();
    let error = agents.start(AgentRequest::new("p"), CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.0, "no model is set; name one in the settings, or in the call");
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let usage = json!({"prompt_tokens": 11, "completion_tokens": 7});
    let parts = json!([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]);
    for (api, body) in [
        (
            Api::OpenAi,
            json!({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}], "usage": usage}),
        ),
        (
            Api::OpenAi,
            json!({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}], "usage": usage}),
        ),
        (
            Api::Anthropic,
            json!({"content": parts, "stop_reason": "end_turn", "usage": {"input_tokens": 11, "output_tokens": 7}}),
        ),
    ] {
        let server = Server::new([Act::Whole(body)]).await;
        let child = start(api, &server, AgentRequest::new("prompt"), CancellationToken::new()).await;
        assert_eq!(child.result.await, Ok(Answer::text("Hello")));
        assert_eq!(child.meter.total(), Some(Usage::new(11, 7)));
    }
}

#[tokio::test]
async fn caches_and_costs_are_counted_in_every_spelling() {
    let cents = |number: u64| Usd::from_billionths(number * 10_000_000);
    for (api, usage, expected) in [
        (
            Api::OpenAi,
            json!({"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 80}}),
            Usage::new(100, 7).cached(80, 0),
        ),
        // DeepSeek, which says the same twice; and one that leaves the sum out.
        (
            Api::OpenAi,
            json!({"prompt_tokens": 100, "completion_tokens": 7, "prompt_cache_hit_tokens": 80,
                   "prompt_cache_miss_tokens": 20, "prompt_tokens_details": {"cached_tokens": 80}}),
            Usage::new(100, 7).cached(80, 0),
        ),
        (
            Api::OpenAi,
            json!({"completion_tokens": 7, "prompt_cache_hit_tokens": 80, "prompt_cache_miss_tokens": 20}),
            Usage::new(100, 7).cached(80, 0),
        ),
        // Moonshot.
        (
            Api::OpenAi,
            json!({"prompt_tokens": 100, "completion_tokens": 7, "cached_tokens": 80}),
            Usage::new(100, 7).cached(80, 0),
        ),
        // OpenRouter.
        (
            Api::OpenAi,
            json!({"prompt_tokens": 194, "completion_tokens": 2, "cost": 0.95, "cost_details": {"upstream_inference_cost": 19},
                   "prompt_tokens_details": {"cached_tokens": 50, "cache_write_tokens": 100, "audio_tokens": 0}}),
            Usage::new(194, 2).cached(50, 100).costing(cents(95)),
        ),
        (
            Api::OpenAi,
            json!({"prompt_tokens": 1, "completion_tokens": 1, "cost": 0}),
            Usage::new(1, 1).costing(Usd::default()),
        ),
        // Perplexity, xAI, DeepInfra.
        (
            Api::OpenAi,
            json!({"prompt_tokens": 1, "completion_tokens": 1, "cost": {"total_cost": 0.02, "input_tokens_cost": 0.01}}),
            Usage::new(1, 1).costing(cents(2)),
        ),
        (
            Api::OpenAi,
            json!({"prompt_tokens": 1, "completion_tokens": 1, "cost_in_usd_ticks": 200_000_000}),
            Usage::new(1, 1).costing(cents(2)),
        ),
        (
            Api::OpenAi,
            json!({"prompt_tokens": 1, "completion_tokens": 1, "estimated_cost": 0.02}),
            Usage::new(1, 1).costing(cents(2)),
        ),
        // A gateway to Anthropic.
        (
            Api::OpenAi,
            json!({"prompt_tokens": 100, "completion_tokens": 7, "cache_creation_input_tokens": 30,
                   "cache_read_input_tokens": 60}),
            Usage::new(100, 7).cached(60, 30),
        ),
        // What cannot be.
        (
            Api::OpenAi,
            json!({"prompt_tokens": -1, "completion_tokens": "7", "cost": -3, "prompt_tokens_details": null}),
            Usage::default(),
        ),
        (
            Api::Anthropic,
            json!({"input_tokens": 10, "output_tokens": 7, "cache_read_input_tokens": 7000,
                   "cache_creation_input_tokens": 300}),
            Usage::new(7310, 7).cached(7000, 300),
        ),
        (
            Api::Anthropic,
            json!({"input_tokens": 10, "output_tokens": 7, "cost": 0.02, "cache_read_input_tokens": null}),
            Usage::new(10, 7).costing(cents(2)),
        ),
    ] {
        let whole = match api {
            Api::OpenAi => {
                json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": usage})
            }
            Api::Anthropic => {
                json!({"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn", "usage": usage})
            }
        };
        let mut streamed = api.says(&["a"]);
        let at = if api == Api::OpenAi { streamed.len() - 2 } else { 0 };
        streamed[at] = match api {
            Api::OpenAi => format!("data: {}\n\n", json!({"choices": [], "usage": usage})),
            Api::Anthropic => {
                format!("data: {}\n\n", json!({"type": "message_start", "message": {"usage": usage}}))
            }
        };
        for act in [Act::Whole(whole), Act::Stream(streamed)] {
            let server = Server::new([act]).await;
            let child = start(api, &server, AgentRequest::new("prompt"), CancellationToken::new()).await;
            child.result.await.unwrap();
            assert_eq!(child.meter.total(), Some(expected), "{usage}");
        }
    }
}

#[tokio::test]
async fn usage_is_found_where_servers_put_it() {
    let usage = json!({"prompt_tokens": 11, "completion_tokens": 7});
    for last in [
        json!({"choices": [], "usage": usage}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": usage}}),
    ] {
        let counting = json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}], "usage":
                              {"prompt_tokens": 11, "completion_tokens": 1}});
        let events = [counting, last.clone()].map(|event| format!("data: {event}\n\n"));
        let server = Server::new([Act::Stream(events.into())]).await;
        let child = start(Api::OpenAi, &server, AgentRequest::new("prompt"), CancellationToken::new()).await;
        child.result.await.unwrap();
        assert_eq!(child.meter.total(), Some(Usage::new(11, 7)), "{last}");
    }
}

#[tokio::test]
async fn usage_that_comes_some_time_after_the_reason_is_counted() {
    for api in BOTH {
        let server = Server::new([Act::Slowly(api.says(&["a"]), Duration::from_millis(100))]).await;
        let child = start(api, &server, AgentRequest::new("prompt"), CancellationToken::new()).await;
        assert_eq!(child.result.await, Ok(Answer::text("a")));
        assert_eq!(child.meter.total(), Some(api.usage()));
    }
}

#[tokio::test]
async fn a_megabyte_is_an_answer_and_more_than_allowed_is_none() {
    for api in BOTH {
        let piece = "0123456789abcdef".repeat(64);
        let events = api.says(&[&*piece; 1024]);
        let server = Server::new([Act::Stream(events.clone()), Act::Stream(events.clone())]).await;
        assert_eq!(ask(api, &server).await.unwrap().text.len(), 1 << 20);
        let body = json!({"choices": [{"message": {"content": "x".repeat(2000)}, "finish_reason": "stop"}]});
        for act in [Act::Stream(events), Act::Whole(body)] {
            let server = Server::new([act]).await;
            let agents = OpenAi::new(&server.url(), None).unwrap().model("m").max_answer_bytes(1000);
            if api == Api::OpenAi {
                let child = agents.start(AgentRequest::new("p"), CancellationToken::new()).await.unwrap();
                let (_, reason) = failure(child.result.await);
                assert_eq!(reason, "answerSize: the answer is longer than 1000 bytes");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_may_take_longer_than_any_of_its_silences() {
    for api in BOTH {
        let mut request = AgentRequest::new("prompt");
        request.options.stall_ms = Some(2000);
        let pause = Duration::from_millis(300);
        let server = Server::new([Act::Slowly(api.says(&["a", "b", "c"]), pause)]).await;
        let started = tokio::time::Instant::now();
        assert_eq!(run(api, &server, request).await, Ok(Answer::text("abc")));
        assert!(started.elapsed() > Duration::from_millis(1500));
    }
}
