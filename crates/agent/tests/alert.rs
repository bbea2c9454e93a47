//! Events on their way from Pacemaker to a receiver: bounded, in order, retried, and without the address in any log.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use dyad_agent::alert::{Delivery, Event, Spool, deliver};
use dyad_cluster::pair::{Pair, Webhook};
use serde_json::Value;

fn event(number: u64) -> Event {
    let seconds = (dyad_node::journal::now_ms() / 1000).to_string();
    let number = number.to_string();
    let event = Event::from_environment(|name| {
        let value = match name {
            "CRM_alert_kind" => "node",
            "CRM_alert_node" => "node-b",
            "CRM_alert_desc" => "lost",
            "CRM_alert_timestamp_epoch" => &seconds,
            "CRM_alert_node_sequence" => &number,
            _ => return None,
        };
        Some(value.to_owned())
    });
    event.unwrap()
}

fn pair(directory: &Path, url: &str) -> Pair {
    let text = include_str!("../../cluster/tests/pairs/usual.json");
    let mut pair: Pair = serde_json::from_str(text).unwrap();
    let url_file = directory.join("webhook");
    std::fs::write(&url_file, format!("url={url}\nauthorization=Bearer t0ken\n")).unwrap();
    std::fs::set_permissions(&url_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    pair.webhook = Some(Webhook { url_file, ca_file: None });
    pair
}

/// A receiver that gives these answers, one after the other, and then 204 to everything; gives what it was sent.
fn receiver(answers: &'static [&'static str]) -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, received) = channel();
    std::thread::spawn(move || {
        let mut answers = answers.iter();
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while reader.read_line(&mut head).unwrap() > 2 {}
            let length = head.to_lowercase();
            let length = length.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = answers.next().unwrap_or(&"204 No Content");
            let text =
                format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = reader.get_mut().write_all(text.as_bytes());
            let document = serde_json::from_slice(&body).unwrap();
            if sender.send((head, document)).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/services/s3cret"), received)
}

/// A receiver that fails at first gets every event in the end, in order, and what it never wants holds up nothing.
/// Neither the secret part of the address nor the authorization is said to anybody.
#[test]
fn events_reach_a_receiver_that_fails_at_first() {
    let directory = tempfile::tempdir().unwrap();
    let spool_directory = directory.path().join("spool");
    std::fs::create_dir(&spool_directory).unwrap();
    let spool = Spool::new(&spool_directory);
    for number in 1..=3 {
        assert_eq!(spool.put(&event(number)).unwrap(), 0);
    }
    // Not an event, a link to something secret, and what an agent that was killed left over.
    std::fs::write(spool_directory.join("0.json"), "{").unwrap();
    std::os::unix::fs::symlink("/etc/shadow", spool_directory.join("1.json")).unwrap();
    std::fs::write(spool_directory.join(".2"), "{").unwrap();
    let (url, received) = receiver(&["503 Busy", "204 Fine", "422 No"]);
    let said = Mutex::new(String::new());
    let say = |text: &str| said.lock().unwrap().extend([text, "\n"]);
    let delivery = deliver(&pair(directory.path(), &url), &spool, &say).unwrap();
    assert_eq!(delivery, Delivery { delivered: 2, dropped: 3, retries: 1 });
    let ids: Vec<String> = received
        .try_iter()
        .map(|(head, document)| {
            assert!(head.starts_with("POST /services/s3cret HTTP/1.1"), "{head}");
            assert!(head.contains("Authorization: Bearer t0ken"), "{head}");
            assert_eq!(document["node"], "node-b");
            document["id"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 4, "one was sent twice: {ids:?}");
    assert_eq!(ids[0], ids[1], "the first one again");
    assert!(ids[1] < ids[2] && ids[2] < ids[3], "{ids:?}");
    assert_eq!(std::fs::read_dir(&spool_directory).unwrap().count(), 0);
    let said = said.into_inner().unwrap();
    assert!(
        said.contains("the receiver answers 503") && said.contains("takes events again"),
        "{said}"
    );
    assert!(!said.contains("s3cret") && !said.contains("t0ken"), "{said}");
}

/// However many events come while nobody takes them, a bounded number waits, the newest of them.
#[test]
fn no_more_than_a_bounded_number_waits() {
    let directory = tempfile::tempdir().unwrap();
    let spool = Spool::new(directory.path());
    let mut dropped = 0;
    for number in 0..300 {
        dropped += spool.put(&event(number)).unwrap();
    }
    let waiting = spool.waiting().unwrap();
    assert_eq!((waiting.len(), dropped), (256, 44));
    let newest: Event =
        serde_json::from_slice(&std::fs::read(waiting.last().unwrap()).unwrap()).unwrap();
    assert!(newest.id.ends_with("-299"), "{}", newest.id);
}

/// A pair that names no receiver any more keeps no events.
#[test]
fn without_a_receiver_nothing_waits() {
    let directory = tempfile::tempdir().unwrap();
    let spool_directory = directory.path().join("spool");
    std::fs::create_dir(&spool_directory).unwrap();
    let spool = Spool::new(&spool_directory);
    spool.put(&event(1)).unwrap();
    let mut pair = pair(directory.path(), "http://127.0.0.1:9/");
    pair.webhook = None;
    assert_eq!(deliver(&pair, &spool, &|_| ()).unwrap(), Delivery::default());
    assert!(spool.waiting().unwrap().is_empty());
}
