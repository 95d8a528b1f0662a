//! Fetching from servers that misbehave: every byte arrives, or an error says which and why.

use crate::sandbox::Sandbox;
use crate::server::{Reply, Request, Server};
use repro::paper::data::Error;
use repro::paper::data::fetch::{Config, Entry, Network, Summary, run};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn quick() -> Network {
    Network { first_wait: Duration::from_millis(1), attempts: 4, silence: Duration::from_secs(5), ..Network::default() }
}

fn entry(url: String, bytes: Option<&[u8]>) -> Entry {
    Entry { url, size: bytes.map(|bytes| bytes.len() as u64), sha256: bytes.map(sha256) }
}

fn fetch(sandbox: &Sandbox, network: &Network, files: Vec<Entry>) -> Result<Summary, Error> {
    run(&Config { files, ..Config::default() }, network, &sandbox.path("out"), &mut |_| ())
}

/// Fetches `/file.bin` from a server and compares it with what it should be.
fn arrives(expected: &[u8], known: bool, answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Vec<Request> {
    let (sandbox, server) = (Sandbox::new(), Server::start(answer));
    let url = format!("{}/file.bin", server.url);
    let summary = fetch(&sandbox, &quick(), vec![entry(url.clone(), known.then_some(expected))]).unwrap();
    assert!(std::fs::read(sandbox.path("out/file.bin")).unwrap() == expected);
    assert_eq!((summary.files[0].size, summary.files[0].sha256.as_str()), (expected.len() as u64, sha256(expected).as_str()));
    let left: Vec<String> =
        std::fs::read_dir(sandbox.path("out")).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(left.len(), 2, "only the file and its manifest are left: {left:?}");
    let manifest: Config = serde_yaml::from_str(&std::fs::read_to_string(sandbox.path("out/manifest.yaml")).unwrap()).unwrap();
    assert_eq!(manifest.files, [entry(url, Some(expected))]);
    server.requests()
}

fn fails(known: Option<&[u8]>, answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> String {
    let (sandbox, server) = (Sandbox::new(), Server::start(answer));
    let error = fetch(&sandbox, &quick(), vec![entry(format!("{}/file.bin", server.url), known)]).unwrap_err();
    assert!(!sandbox.path("out/file.bin").exists(), "a file that failed has no name");
    error.to_string().replace(&server.url, "SERVER")
}

#[test]
fn a_plain_file_arrives() {
    let file = Arc::new(body(300_000));
    let served = file.clone();
    assert_eq!(arrives(&file, true, move |request| Reply::file(request, &served)).len(), 1);
}

#[test]
fn a_dropped_connection_is_continued_where_it_broke() {
    let file = Arc::new(body(1_000_000));
    let served = file.clone();
    let requests = arrives(&file, true, move |request| {
        let reply = Reply::file(request, &served);
        if request.earlier < 6 { reply.cut_after(140_000) } else { reply }
    });
    let starts: Vec<Option<usize>> = requests.iter().map(Request::from).collect();
    assert_eq!(starts[0], None);
    assert!(starts[1..].windows(2).all(|pair| pair[0] < pair[1]), "{starts:?}");
    assert_eq!(requests[1].headers["if-range"], "\"v1\"");
}

#[test]
fn a_connection_dropped_at_once_is_tried_again() {
    let file = Arc::new(body(1000));
    let served = file.clone();
    arrives(
        &file,
        false,
        move |request| if request.earlier == 0 { Reply::new(200, &served).cut_after(0) } else { Reply::new(200, &served) },
    );
}

#[test]
fn a_server_without_ranges_is_read_from_the_start_again() {
    let file = Arc::new(body(400_000));
    let served = file.clone();
    arrives(&file, true, move |request| {
        let reply = Reply::new(200, &served);
        if request.earlier < 2 { reply.cut_after(200_000) } else { reply }
    });
}

#[test]
fn a_file_that_changed_in_between_is_fetched_whole() {
    let file = Arc::new(body(400_000));
    let served = file.clone();
    // The server honours if-range: another tag means the whole new file.
    arrives(&file, false, move |request| match request.headers.get("if-range") {
        None => Reply::new(200, &vec![9; 300_000]).header("etag", "\"old\"").cut_after(100_000),
        Some(tag) => {
            assert_eq!(tag, "\"old\"");
            Reply::new(200, &served).header("etag", "\"new\"")
        }
    });
}

#[test]
fn an_announced_length_that_is_too_long_is_told() {
    let file = body(1000);
    let told = fails(None, move |_| Reply::new(200, &file).announce(2000));
    assert!(told.starts_with("`SERVER/file.bin`: gave up after 4 tries in a row without progress, the last because "), "{told}");
    let file = body(1000);
    let known = file.clone();
    let told = fails(Some(&known), move |_| Reply::new(200, &file).announce(2000));
    assert!(told.contains("the server says the file has 2000 bytes, 1000 are expected"), "{told}");
}

#[test]
fn an_announced_length_that_is_too_short_is_told() {
    let file = body(1000);
    let known = file.clone();
    let told = fails(Some(&known), move |_| Reply::new(200, &file).announce(500));
    assert!(told.contains("the server says the file has 500 bytes, 1000 are expected"), "{told}");
}

#[test]
fn wrong_bytes_are_fetched_again_from_the_start() {
    let file = Arc::new(body(50_000));
    let served = file.clone();
    let requests = arrives(&file, true, move |request| {
        if request.earlier == 0 { Reply::new(200, &vec![0; 50_000]) } else { Reply::file(request, &served) }
    });
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].from(), None);
}

#[test]
fn wrong_bytes_for_ever_are_an_error_with_both_digests() {
    let (good, wrong) = (body(1000), vec![1; 1000]);
    let told = fails(Some(&good), move |_| Reply::new(200, &vec![1; 1000]));
    assert!(told.contains(&format!("its SHA-256 is {}, {} is expected", sha256(&wrong), sha256(&good))), "{told}");
}

#[test]
fn a_range_that_was_not_asked_for_is_not_used() {
    let file = Arc::new(body(300_000));
    let served = file.clone();
    arrives(&file, true, move |request| match request.earlier {
        0 => Reply::file(request, &served).cut_after(150_000),
        1 => Reply::new(206, &served[10..]).header("content-range", "bytes 10-299999/300000"),
        _ => Reply::file(request, &served),
    });
}

#[test]
fn a_busy_server_is_waited_for() {
    for status in [429, 503] {
        let file = Arc::new(body(1000));
        let served = file.clone();
        let requests = arrives(&file, true, move |request| {
            if request.earlier < 2 {
                Reply::new(status, b"busy").header("retry-after", "0")
            } else {
                Reply::file(request, &served)
            }
        });
        assert_eq!(requests.len(), 3);
    }
}

#[test]
fn retry_after_is_respected() {
    let file = Arc::new(body(10));
    let served = file.clone();
    let start = std::time::Instant::now();
    arrives(&file, true, move |request| {
        if request.earlier == 0 { Reply::new(503, b"").header("retry-after", "1") } else { Reply::file(request, &served) }
    });
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_server_that_stays_busy_is_given_up() {
    let told = fails(None, |_| Reply::new(503, b""));
    assert_eq!(
        told,
        "`SERVER/file.bin`: gave up after 4 tries in a row without progress, the last because the server answered 503; run it again to continue"
    );
}

#[test]
fn a_missing_file_is_not_asked_for_twice() {
    let (sandbox, server) = (Sandbox::new(), Server::start(|_| Reply::new(404, b"")));
    let error = fetch(&sandbox, &quick(), vec![entry(format!("{}/file.bin", server.url), None)]).unwrap_err();
    assert_eq!(error.to_string(), format!("`{}/file.bin`: the server answered 404", server.url));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_silent_server_is_given_up() {
    let (sandbox, server) = (
        Sandbox::new(),
        Server::start(|_| {
            std::thread::sleep(Duration::from_secs(30));
            Reply::new(200, b"late")
        }),
    );
    let network = Network { silence: Duration::from_millis(100), attempts: 2, ..quick() };
    let error = fetch(&sandbox, &network, vec![entry(format!("{}/file.bin", server.url), None)]).unwrap_err();
    assert!(error.to_string().contains("gave up after 2 tries"), "{error}");
}

#[test]
fn a_throttled_file_arrives_although_it_takes_longer_than_a_silence() {
    let file = Arc::new(body(20_000));
    let (sandbox, served) = (Sandbox::new(), file.clone());
    let server = Server::start(move |request| Reply::file(request, &served).slowly(Duration::from_millis(30)));
    let network = Network { silence: Duration::from_millis(300), ..quick() };
    fetch(&sandbox, &network, vec![entry(format!("{}/file.bin", server.url), Some(&file))]).unwrap();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn redirects_are_followed_and_a_circle_is_told() {
    let file = Arc::new(body(5000));
    let served = file.clone();
    arrives(&file, true, move |request| match request.path.as_str() {
        "/file.bin" => Reply::new(302, b"").header("location", "/there"),
        "/there" => Reply::new(307, b"").header("location", "elsewhere"),
        "/elsewhere" => Reply::file(request, &served),
        _ => Reply::new(404, b""),
    });
    let told = fails(None, |_| Reply::new(302, b"").header("location", "/file.bin"));
    assert_eq!(told, "`SERVER/file.bin`: the server answered 302; it redirects without end");
}

#[test]
fn a_run_that_was_killed_is_continued_by_the_next() {
    let file = Arc::new(body(500_000));
    let served = file.clone();
    let sandbox = Sandbox::new();
    let server = Server::start(move |request| match request.earlier {
        0..2 => Reply::file(request, &served).cut_after(if request.earlier == 0 { 300_000 } else { 0 }),
        _ => Reply::file(request, &served),
    });
    let url = format!("{}/file.bin", server.url);
    let network = Network { attempts: 1, partial: Some(sandbox.path("partial")), ..quick() };
    // One try that breaks stands for a process that ends in the middle; the next one has another output folder.
    let config = Config { files: vec![entry(url, Some(&file))], ..Config::default() };
    run(&config, &network, &sandbox.path("first"), &mut |_| ()).unwrap_err();
    run(&config, &Network { attempts: 3, ..network }, &sandbox.path("second"), &mut |_| ()).unwrap();
    assert!(std::fs::read(sandbox.path("second/file.bin")).unwrap() == *file);
    assert_eq!(server.requests().last().unwrap().from(), Some(300_000));
    assert_eq!(std::fs::read_dir(sandbox.path("partial")).unwrap().count(), 0);
}

#[test]
fn many_files_are_fetched_at_once_and_told_in_order() {
    let sandbox = Sandbox::new();
    let server = Server::start(|request| Reply::new(200, request.path.as_bytes()).slowly(Duration::from_millis(5)));
    let files: Vec<Entry> = (0..12).map(|at| entry(format!("{}/file-{at:02}", server.url), None)).collect();
    let mut last = 0;
    let config = Config { files, ..Config::default() };
    let summary = run(&config, &quick(), &sandbox.path("out"), &mut |progress| last = progress.done).unwrap();
    let names: Vec<&str> = summary.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, (0..12).map(|at| format!("file-{at:02}")).collect::<Vec<_>>());
    assert_eq!(summary.bytes, 12 * 8);
    assert!(last > 0 && last <= summary.bytes);
}

/// A hub with a listing of two pages, whose files lie on another server.
fn hub(cdn: String) -> Server {
    Server::start(move |request| {
        let base = "/api/datasets/owner/set/tree/main/sample";
        match request.path.as_str() {
            path if path == format!("{base}?recursive=true") => Reply::new(
                200,
                br#"[{"type":"directory","path":"sample/10BT","size":0},
                     {"type":"file","path":"sample/10BT/b.parquet","size":130,"lfs":{"oid":"SHA","size":20}},
                     {"type":"file","path":"sample/10BT/readme.md","size":5}]"#
                    .as_slice(),
            )
            .header("link", &format!("<http://{}{base}?cursor=2>; rel=\"next\"", request.headers["host"])),
            path if path == format!("{base}?cursor=2") => {
                let text = r#"[{"type":"file","path":"sample/10BT/a.parquet","size":20}]"#;
                Reply::new(200, text.as_bytes())
            }
            path if path.starts_with("/datasets/owner/set/resolve/main/sample/10BT/") => {
                Reply::new(302, b"").header("location", &format!("{cdn}{path}"))
            }
            _ => Reply::new(404, b""),
        }
    })
}

#[test]
fn a_reference_to_the_hub_is_listed_matched_and_fetched_and_the_token_stays_with_the_hub() {
    let sandbox = Sandbox::new();
    let content = body(20);
    let served = content.clone();
    let cdn = Server::start(move |request| Reply::file(request, &served));
    let hub = hub(cdn.url.clone());
    let network = Network { hub: hub.url.clone(), token: Some("hf_secret".into()), ..quick() };
    let files = vec![entry("hf://datasets/owner/set/sample/*/*.parquet".into(), None)];
    // The listing's digest is a placeholder, so the file that has one cannot match it.
    let error = fetch(&sandbox, &network, files.clone()).unwrap_err().to_string();
    assert!(error.contains("SHA is expected") && !error.contains("secret"), "{error}");
    let files = vec![entry("hf://datasets/owner/set/sample/*/a.parquet".into(), None)];
    let summary = fetch(&sandbox, &network, files).unwrap();
    assert_eq!(summary.files[0].url, "hf://datasets/owner/set@main/sample/10BT/a.parquet");
    assert!(std::fs::read(sandbox.path("out/a.parquet")).unwrap() == content);
    assert!(hub.requests().iter().all(|request| request.headers["authorization"] == "Bearer hf_secret"));
    assert!(!cdn.requests().is_empty());
    assert!(cdn.requests().iter().all(|request| !request.headers.contains_key("authorization")));
}

#[test]
fn a_plain_address_never_gets_the_token() {
    let sandbox = Sandbox::new();
    let server = Server::start(|_| Reply::new(200, b"x"));
    let network = Network { hub: server.url.clone(), token: Some("hf_secret".into()), ..quick() };
    fetch(&sandbox, &network, vec![entry(format!("{}/file.bin", server.url), None)]).unwrap();
    assert!(server.requests().iter().all(|request| !request.headers.contains_key("authorization")));
}

#[test]
fn what_the_hub_does_not_have_is_told() {
    let sandbox = Sandbox::new();
    let hub = hub("http://127.0.0.1:1".into());
    let network = Network { hub: hub.url.clone(), ..quick() };
    let fail =
        |url: &str| fetch(&sandbox, &network, vec![entry(url.into(), None)]).unwrap_err().to_string().replace(&hub.url, "HUB");
    assert_eq!(
        fail("hf://datasets/owner/set/sample/*.csv"),
        "`hf://datasets/owner/set/sample/*.csv`: none of the 3 files the hub lists there matches"
    );
    assert_eq!(
        fail("hf://datasets/owner/nothing/x/*.csv"),
        "`HUB/api/datasets/owner/nothing/tree/main/x?recursive=true`: the server answered 404; check the name of the dataset, its revision and the path"
    );
}

#[test]
fn limits_on_files_and_bytes_are_kept() {
    let sandbox = Sandbox::new();
    let server = Server::start(|_| Reply::new(200, b"0123456789"));
    let files: Vec<Entry> =
        (0..5).map(|at| Entry { size: Some(10), ..entry(format!("{}/{at}.bin", server.url), None) }).collect();
    let count = |config: &Config| run(config, &quick(), &sandbox.path("out"), &mut |_| ()).map(|summary| summary.files.len());
    assert_eq!(count(&Config { files: files.clone(), max_files: 2, max_bytes: 0 }).unwrap(), 2);
    assert_eq!(count(&Config { files: files.clone(), max_files: 0, max_bytes: 35 }).unwrap(), 3);
    let error = count(&Config { files, max_files: 0, max_bytes: 5 }).unwrap_err();
    assert_eq!(error.to_string(), "`max_bytes` is 5, but must be at least the size of the first file");
}

#[test]
fn wrong_settings_are_told_before_anything_is_fetched() {
    let check = |files: Vec<Entry>| Config { files, ..Config::default() }.check().unwrap_err().to_string();
    assert_eq!(check(vec![]), "`files` is empty, but must be a list of at least one `url`");
    let digest = Entry { url: "https://a/b".into(), size: None, sha256: Some("abc".into()) };
    assert_eq!(check(vec![digest]), "`sha256` is `abc`, but must be 64 hexadecimal digits");
    let pattern = Entry { url: "hf://datasets/a/b/*.parquet".into(), size: Some(3), sha256: None };
    assert!(check(vec![pattern]).contains("cannot hold for every file that matches"));
}

#[test]
fn the_manifest_that_ships_can_be_read() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/manifest.yaml")).unwrap();
    let manifest: Config = serde_yaml::from_str(&text).unwrap();
    manifest.check().unwrap();
    assert_eq!(manifest.files[0].url, "hf://datasets/HuggingFaceFW/fineweb-edu/sample/100BT/*.parquet");
}
