//! Keys are sent to one place and shown nowhere.

use fanfold::{AgentRequest, Answer, CancellationToken, Subagents as _};
use fanfold_agents::{Anthropic, ApiKey, FailureKind, OpenAi};
use serde_json::json;

use super::server::{Act, Api, BOTH, Server};
use super::{KEY, ask, failure, run};

#[tokio::test]
async fn a_redirect_carries_nothing_anywhere() {
    for api in BOTH {
        for status in [301, 302, 303, 307, 308] {
            let other = Server::new([Act::Stream(api.says(&["caught"]))]).await;
            let location = format!("{}/messages", other.url());
            let act = Act::Error { status, headers: vec![("location", location)], body: String::new() };
            let server = Server::new([act]).await;
            let (kind, reason) = failure(ask(api, &server).await);
            assert_eq!(kind, FailureKind::Protocol, "{reason}");
            assert!(other.asked().is_empty());
        }
    }
}

#[tokio::test]
async fn a_server_that_repeats_the_key_does_not_make_it_known() {
    for api in BOTH {
        let said = format!("the key {KEY} is bad");
        let mut broken = api.says(&[]);
        broken.insert(0, format!("data: {}\n\n", json!({"error": {"type": "e", "message": said}})));
        for act in [
            api.error(401, "authentication_error", &said),
            api.error(400, "invalid_request_error", &said),
            api.error(403, "permission_error", &said),
            Act::Error { status: 500, headers: vec![("retry-after", "9999".into())], body: said.clone() },
            Act::Stream(broken),
        ] {
            let server = Server::new(vec![act; 3]).await;
            let error = ask(api, &server).await.unwrap_err();
            assert!(error.to_string().contains("the key [key] is bad"), "{error}");
            assert!(!format!("{error:?}").contains(KEY));
        }
    }
}

#[tokio::test]
async fn a_long_text_is_not_cut_within_the_key() {
    for api in BOTH {
        // So often that a cut is within the key, wherever it is; the second is longer than what is read of an error.
        for said in [KEY.repeat(1000), KEY.repeat(5000)] {
            let mut broken = api.says(&[]);
            broken.insert(0, format!("data: {}\n\n", json!({"error": {"type": "e", "message": said}})));
            let mut acts = vec![
                api.error(400, "invalid_request_error", &said),
                Act::Error { status: 400, headers: Vec::new(), body: said.clone() },
                Act::Stream(broken),
            ];
            if api == Api::OpenAi {
                let declined = json!({"choices": [{"message": {"refusal": said}, "finish_reason": "stop"}]});
                acts.push(Act::Whole(declined));
            }
            for act in acts {
                let server = Server::new(vec![act; 3]).await;
                let error = ask(api, &server).await.unwrap_err().to_string();
                assert!(error.contains("[key]") && error.len() < 3000, "{error}");
                assert!(
                    !error.contains("test") && !error.contains("012") && !error.contains("789"),
                    "{error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_repeats_the_key_does_not_make_it_known() {
    for api in BOTH {
        let server = Server::new([Act::Stream(api.says(&["It is ", &KEY[..9], &KEY[9..], "."]))]).await;
        assert_eq!(ask(api, &server).await, Ok(Answer::text("It is [key].")));

        // However it is spelled.
        let escaped = KEY.replace('-', r"\u002d");
        let said = format!(r#"{{"list": ["{KEY}", {{"{KEY}": "so {escaped}"}}], "n": 1}}"#);
        let server = Server::new([Act::Stream(api.says(&[&said]))]).await;
        let mut request = AgentRequest::new("p");
        request.options.schema = Some(json!({"type": "object"}));
        let expected = json!({"list": ["[key]", {"[key]": "so [key]"}], "n": 1});
        assert_eq!(run(api, &server, request).await.unwrap().structured, Some(expected));
    }
}

#[test]
fn no_key_is_in_what_is_shown_of_a_provider() {
    let key = || Some(ApiKey::new(KEY).unwrap());
    for shown in [
        format!("{:?}", OpenAi::new(OpenAi::BASE_URL, key()).unwrap().model("m")),
        format!("{:#?}", Anthropic::new(Anthropic::BASE_URL, key()).unwrap()),
    ] {
        assert!(!shown.contains("0123456789") && shown.contains("[key]"), "{shown}");
    }
}

#[test]
fn a_key_is_not_sent_where_everyone_can_read_it() {
    let key = ApiKey::new(KEY).unwrap();
    let error = OpenAi::new("http://models.example/v1", Some(key)).unwrap_err();
    assert!(error.to_string().contains("use https://"), "{error}");
    OpenAi::new("http://models.example/v1", None).unwrap();
}

#[tokio::test]
async fn an_address_that_does_not_resolve_does_not_show_the_url() {
    let agents = OpenAi::new("http://does-not-resolve.invalid/v1?token=secret", None).unwrap();
    let agents = agents.model("m").transient_retries(0);
    let child = agents.start(AgentRequest::new("p"), CancellationToken::new()).await.unwrap();
    let error = child.result.await.unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(error.to_string().starts_with("connection: "), "{error}");
}
