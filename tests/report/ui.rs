//! `repro ui` over a socket: what it answers, and to whom it does not.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::project;
use crate::sandbox::Sandbox;

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn of(sandbox: &Sandbox) -> Server {
        let mut child = sandbox.command(&["ui", "--port", "0", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = serde_json::from_str::<Value>(&line).unwrap()["url"].as_str().unwrap().to_string();
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_string();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        Server { child, address }
    }

    fn say(&self, text: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn ask(&self, method: &str, path: &str, headers: &str) -> (u16, String) {
        let answer = self.say(&format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.address));
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_string()))
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "")
    }

    fn live(&self) -> Value {
        serde_json::from_str(&self.get("/api/live").1).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_follows_a_run() {
    let sandbox = project();
    let server = Server::of(&sandbox);
    let (status, page) = server.get("/");
    assert_eq!(status, 200);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("No claim has been judged yet."));
    let before = server.live();
    assert_eq!((&before["states"], &before["going"]), (&"sssww".into(), &false.into()));
    sandbox.run(&[]).ok();
    let began = Instant::now();
    let after = loop {
        let live = server.live();
        if live["states"] == "rrrrr" {
            break live;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{live}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_ne!((&after["content"], &after["version"]), (&before["content"], &before["version"]));
    assert!(server.get("/api/content").1.contains("claim of E1"));
    let facts: Value = serde_json::from_str(&server.get("/api/facts").1).unwrap();
    assert_eq!((&facts["live"], &facts["nodes"][0]["s"]), (&true.into(), &"ran".into()));
    assert_eq!(server.get("/api/log?node=report"), (200, "2 verdicts, 1 figures, 1 tables\n".into()));
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let sandbox = project();
    let server = Server::of(&sandbox);
    let port = server.address.rsplit(':').next().unwrap();
    let refused = |text: String| {
        let answer = server.say(&text);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{text:?} was answered with {answer}");
        assert!(!answer.contains("claim") && !answer.contains("sweep"), "{answer}");
    };
    for path in ["/", "/api/live", "/api/facts", "/api/log?node=report"] {
        refused(format!("GET {path} HTTP/1.1\r\nHost: evil.example:{port}\r\n\r\n"));
        refused(format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
        refused(format!("GET {path} HTTP/1.1\r\n\r\n"));
        refused(format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: http://evil.example\r\n\r\n"));
        refused(format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: null\r\n\r\n"));
        refused(format!("GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nSec-Fetch-Site: cross-site\r\n\r\n"));
    }
    let answer =
        server.say(&format!("GET /api/live HTTP/1.1\r\nHost: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for header in ["X-Content-Type-Options: nosniff", "X-Frame-Options: DENY", "Cross-Origin-Resource-Policy: same-origin"] {
        assert!(answer.contains(header), "{answer}");
    }
}

#[test]
fn nothing_can_be_written_and_nothing_else_can_be_read() {
    let sandbox = project();
    sandbox.run(&[]).ok();
    let server = Server::of(&sandbox);
    let before = std::fs::read(sandbox.path(".repro/journal")).unwrap();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        for path in ["/", "/api/live", "/api/log?node=report"] {
            assert_eq!(server.ask(method, path, "Content-Length: 0\r\n").0, 405, "{method} {path}");
        }
    }
    for path in [
        "/../pipeline.yaml",
        "/pipeline.yaml",
        "//etc/passwd",
        "/api/",
        "/api/log?node=../../pipeline.yaml",
        "/api/log?node=..%2F..%2Fjournal",
        "/api/log",
    ] {
        assert_eq!(server.get(path).0, 404, "{path}");
    }
    assert_eq!(server.ask("HEAD", "/", ""), (200, String::new()));
    assert!(server.say("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(server.say(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(40_000))).starts_with("HTTP/1.1 400 "));
    assert_eq!(std::fs::read(sandbox.path(".repro/journal")).unwrap(), before);
}

#[test]
fn a_port_that_is_taken_is_said_to_be() {
    let sandbox = project();
    let server = Server::of(&sandbox);
    let port = server.address.rsplit(':').next().unwrap();
    assert_eq!(
        sandbox.repro(&["ui", "--port", port]).exits(2).err,
        format!("error: port {port} is taken; give another with `--port`, or `--port 0` for any that is free\n")
    );
}
