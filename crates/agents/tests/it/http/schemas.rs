//! Children that are to answer with a value.

use fanfold::AgentRequest;
use fanfold_agents::FailureKind;
use serde_json::{Value, json};

use super::server::{Act, Api, BOTH, Server};
use super::{failure, run};

fn request(schema: Value) -> AgentRequest {
    let mut request = AgentRequest::new("How many?");
    request.options.schema = Some(schema);
    request
}

fn count() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]})
}

/// Where the API takes a schema.
fn format(api: Api, body: &Value) -> Value {
    match api {
        Api::OpenAi => body["response_format"].clone(),
        Api::Anthropic => body["output_config"]["format"].clone(),
    }
}

#[tokio::test]
async fn the_api_is_given_the_shape_and_the_prompt_everything() {
    for api in BOTH {
        let server = Server::new([Act::Stream(api.says(&["{\"n\"", ": 3}"]))]).await;
        assert_eq!(run(api, &server, request(count())).await.unwrap().structured, Some(json!({"n": 3})));
        let shape = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
                           "additionalProperties": false});
        let expected = match api {
            Api::OpenAi => {
                json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": shape}})
            }
            Api::Anthropic => json!({"type": "json_schema", "schema": shape}),
        };
        assert_eq!(format(api, &server.asked()[0].body), expected);
        assert!(server.prompts()[0].contains(r#""minimum":1"#));
    }
}

#[tokio::test]
async fn a_schema_that_the_api_cannot_keep_to_is_left_to_the_prompt() {
    let schema =
        json!({"type": "object", "properties": {"n": {"not": {"type": "string"}}}, "required": ["n"]});
    for api in BOTH {
        let server = Server::new([Act::Stream(api.says(&["So: {\"n\": 3}."]))]).await;
        let answer = run(api, &server, request(schema.clone())).await.unwrap();
        assert_eq!(answer.structured, Some(json!({"n": 3})));
        let format = format(api, &server.asked()[0].body);
        match api {
            Api::OpenAi => assert_eq!(format["json_schema"]["strict"], false),
            Api::Anthropic => assert_eq!(format, Value::Null),
        }
    }
}

#[tokio::test]
async fn a_bad_value_is_asked_for_again_with_what_is_wrong() {
    for api in BOTH {
        let acts =
            [r#"{"n": 0}"#, "I cannot count.", r#"{"n": 1}"#].map(|text| Act::Stream(api.says(&[text])));
        let server = Server::new(acts).await;
        assert_eq!(run(api, &server, request(count())).await.unwrap().structured, Some(json!({"n": 1})));
        let prompts = server.prompts();
        assert!(prompts[1].contains("- /n: ") && prompts[1].contains(r#"{"n": 0}"#), "{}", prompts[1]);
        assert!(prompts[2].contains("I cannot count."), "{}", prompts[2]);
    }
}

#[tokio::test]
async fn a_value_is_not_looked_for_in_reasoning() {
    for api in BOTH {
        let acts = [r#"<think>perhaps {"n": 1}"#, r#"<think>perhaps {"n": 1}</think>{"n": 2}"#];
        let server = Server::new(acts.map(|text| Act::Stream(api.says(&[text])))).await;
        assert_eq!(run(api, &server, request(count())).await.unwrap().structured, Some(json!({"n": 2})));
        assert!(server.prompts()[1].contains("it ends within its reasoning"), "{}", server.prompts()[1]);
    }
}

#[tokio::test]
async fn no_value_that_does_not_satisfy_the_schema_is_an_answer() {
    for api in BOTH {
        let server = Server::new(vec![Act::Stream(api.says(&[r#"{"n": 0}"#])); 9]).await;
        let (kind, reason) = failure(run(api, &server, request(count())).await);
        assert_eq!(kind, FailureKind::Schema);
        assert!(reason.contains("asked 3 times; the last: /n: "), "{reason}");
        assert_eq!(server.asked().len(), 3);
    }
}

#[tokio::test]
async fn an_api_without_structured_output_is_asked_without() {
    for api in BOTH {
        let refused = api.error(400, "invalid_request_error", "response_format is not supported");
        let acts = [refused.clone(), Act::Stream(api.says(&["{}"])), Act::Stream(api.says(&[r#"{"n": 2}"#]))];
        let server = Server::new(acts).await;
        assert_eq!(run(api, &server, request(count())).await.unwrap().structured, Some(json!({"n": 2})));
        let formats =
            server.asked().iter().map(|asked| format(api, &asked.body).is_null()).collect::<Vec<_>>();
        assert_eq!(formats, [false, true, true]);

        // It may have been something else.
        let server = Server::new([refused.clone(), refused]).await;
        assert_eq!(failure(run(api, &server, request(count())).await).0, FailureKind::InvalidRequest);
    }
}
