//! Session logs: any JSON (text that begins with `[`), and any sequence of records (bytes otherwise).

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use fanfold::{AgentOutcome, RecordChecker, SessionRecord, StopReason};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

#[derive(Arbitrary)]
enum Record {
    RunStart { run: Id, name: Id },
    AgentStart { run: Id, seq: Seq, phase: Option<String>, child: Id },
    AgentEnd { run: Id, seq: Seq, outcome: u8 },
    RunEnd { run: Id, reason: u8 },
}

/// One of few, so that records meet.
#[derive(Arbitrary)]
enum Id {
    Empty,
    A,
    B,
    Any(String),
}

#[derive(Arbitrary)]
enum Seq {
    Small(u8),
    Any(u64),
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        match id {
            Id::Empty => String::new(),
            Id::A => "a".into(),
            Id::B => "b".into(),
            Id::Any(id) => id,
        }
    }
}

impl From<Seq> for u64 {
    fn from(seq: Seq) -> Self {
        match seq {
            Seq::Small(seq) => (seq % 8).into(),
            Seq::Any(seq) => seq,
        }
    }
}

impl From<Record> for SessionRecord {
    fn from(record: Record) -> Self {
        match record {
            Record::RunStart { run, name } => Self::RunStart { run_id: run.into(), name: name.into() },
            Record::AgentStart { run, seq, phase, child } => Self::AgentStart {
                run_id: run.into(),
                seq: seq.into(),
                label: "l".into(),
                phase,
                child_id: child.into(),
            },
            Record::AgentEnd { run, seq, outcome } => Self::AgentEnd {
                run_id: run.into(),
                seq: seq.into(),
                outcome: [AgentOutcome::Completed, AgentOutcome::Failed, AgentOutcome::Cancelled]
                    [usize::from(outcome % 3)],
            },
            Record::RunEnd { run, reason } => Self::RunEnd {
                run_id: run.into(),
                stop_reason: [StopReason::Completed, StopReason::Cancelled, StopReason::Error]
                    [usize::from(reason % 3)],
            },
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let records = if data.first() == Some(&b'[') {
        let Ok(Value::Array(log)) = serde_json::from_slice(data) else { return };
        log.iter().filter_map(read).collect()
    } else {
        let Ok(records) = Vec::<Record>::arbitrary_take_rest(Unstructured::new(data)) else { return };
        records.into_iter().map(SessionRecord::from).collect()
    };
    check(records);
});

/// A record as it stands in a log; those that are not ours, or refused, are left out.
fn read(value: &Value) -> Option<SessionRecord> {
    let kind = value.get("type")?.as_str()?;
    let record = SessionRecord::from_log(kind, value.get("payload").unwrap_or(&Value::Null));
    assert!(kind.starts_with("tool-workflow/") || record == Ok(None));
    record.ok()?
}

fn check(records: Vec<SessionRecord>) {
    let mut checker = RecordChecker::default();
    let mut taken: Vec<SessionRecord> = Vec::new();
    for record in records {
        let verdict = checker.check(&record);
        // What was refused before has changed nothing: one that never saw it says the same.
        let mut fresh = RecordChecker::default();
        for record in &taken {
            fresh.check(record).expect("a prefix of a legal log is legal");
        }
        assert_eq!(fresh.check(&record), verdict);
        if verdict.is_err() {
            continue;
        }
        // What was taken is written and read.
        let json = serde_json::to_value(&record).expect("a record is JSON");
        let kind = json["type"].as_str().expect("a record has a type");
        assert_eq!(SessionRecord::from_log(kind, &json["payload"]), Ok(Some(record.clone())));
        taken.push(record);
    }
    legal(&taken);
}

/// The rules, told once more without looking at the checker.
fn legal(log: &[SessionRecord]) {
    for (at, record) in log.iter().enumerate() {
        let run = record.run_id();
        let earlier = || log[..at].iter().filter(|record| record.run_id() == run);
        let starts = |seq: u64| {
            earlier().filter(|r| matches!(r, SessionRecord::AgentStart { seq: s, .. } if *s == seq)).count()
        };
        let ends = |seq: u64| {
            earlier().filter(|r| matches!(r, SessionRecord::AgentEnd { seq: s, .. } if *s == seq)).count()
        };
        assert!(!run.is_empty());
        assert!(
            !earlier().any(|record| matches!(record, SessionRecord::RunEnd { .. })),
            "nothing after the end"
        );
        match record {
            SessionRecord::RunStart { name, .. } => assert!(!name.is_empty() && earlier().next().is_none()),
            SessionRecord::AgentStart { seq, child_id, .. } => {
                assert!(earlier().next().is_some());
                assert!(*seq >= 1 && *seq < 1 << 53 && !child_id.is_empty() && starts(*seq) == 0);
            }
            SessionRecord::AgentEnd { seq, .. } => assert_eq!((starts(*seq), ends(*seq)), (1, 0)),
            SessionRecord::RunEnd { .. } => {
                assert!(earlier().next().is_some());
                let count = |is: fn(&SessionRecord) -> bool| earlier().filter(|record| is(record)).count();
                let started = count(|record| matches!(record, SessionRecord::AgentStart { .. }));
                assert_eq!(started, count(|record| matches!(record, SessionRecord::AgentEnd { .. })));
            }
            other => panic!("a record that nobody checks: {other:?}"),
        }
    }
}
