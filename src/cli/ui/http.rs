//! As much of HTTP/1.1 as a page on this machine needs: GET and HEAD, one request a connection.
//!
//! A page of another origin must not read this one. Browsers let it send requests to 127.0.0.1, and with a name that it makes
//! point there (DNS rebinding) even read the answers. So a request is answered only if its `Host` is an address of this machine
//! or `localhost`, and its `Origin`, if it has one, is this server.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const HEAD_BYTES: usize = 16 * 1024;
const HEADERS: usize = 64;
const CONNECTIONS: usize = 32;
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Request {
    pub path: String,
    query: String,
}

impl Request {
    /// A field of the query, percent-decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| decode(value))
    }
}

pub struct Answer {
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
}

impl Answer {
    pub fn html(body: String) -> Answer {
        Answer { status: 200, kind: "text/html; charset=utf-8", body: body.into_bytes() }
    }
    pub fn json(body: String) -> Answer {
        Answer { status: 200, kind: "application/json", body: body.into_bytes() }
    }
    pub fn text(status: u16, body: &str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", body: body.as_bytes().to_vec() }
    }

    fn write(&self, stream: &mut TcpStream, with_body: bool) -> io::Result<()> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        let allow = if self.status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n{allow}\r\n",
            self.status,
            self.kind,
            self.body.len()
        );
        stream.write_all(head.as_bytes())?;
        if with_body {
            stream.write_all(&self.body)?;
        }
        stream.flush()
    }
}

/// Answers until the process ends.
pub fn serve(listener: &TcpListener, address: SocketAddr, answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) {
    let answer = Arc::new(answer);
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
            let _ = Answer::text(503, "too many connections at once").write(&mut stream, true);
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (answer, open) = (answer.clone(), open.clone());
        std::thread::spawn(move || {
            let _ = converse(&mut stream, address, &*answer);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn converse(stream: &mut TcpStream, address: SocketAddr, answer: &dyn Fn(&Request) -> Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&chunk[..read]);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        match head.parse(&bytes) {
            Ok(httparse::Status::Complete(_)) => {
                let with_body = head.method != Some("HEAD");
                let said = match accept(&head, address) {
                    Ok(request) => answer(&request),
                    Err(refusal) => refusal,
                };
                return said.write(stream, with_body);
            }
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES => {}
            _ => return Answer::text(400, "this is no request that this server understands").write(stream, true),
        }
    }
}

/// The request, if it may be answered; otherwise why not.
fn accept(head: &httparse::Request, address: SocketAddr) -> Result<Request, Answer> {
    let header = |name: &str| -> Result<Option<&str>, Answer> {
        let mut found = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let first = found.next();
        if found.next().is_some() {
            return Err(Answer::text(400, &format!("`{name}` stands twice in this request")));
        }
        first
            .map(|header| std::str::from_utf8(header.value).map(str::trim))
            .transpose()
            .map_err(|_| Answer::text(400, &format!("`{name}` of this request is not text")))
    };
    match header("Host")? {
        Some(host) if is_ours(host, address) => {}
        _ => return Err(Answer::text(403, "this server answers only to the address of this machine")),
    }
    if let Some(origin) = header("Origin")?
        && !origin.strip_prefix("http://").is_some_and(|host| is_ours(host, address))
    {
        return Err(Answer::text(403, "this server does not answer to pages of other origins"));
    }
    // Browsers also say where a request without an `Origin` comes from; following a link is fine, loading parts is not.
    if let Some(site) = header("Sec-Fetch-Site")?
        && !matches!(site, "same-origin" | "none")
        && header("Sec-Fetch-Mode")? != Some("navigate")
    {
        return Err(Answer::text(403, "this server does not answer to pages of other origins"));
    }
    if !matches!(head.method, Some("GET" | "HEAD")) {
        return Err(Answer::text(405, "this server only shows: GET and HEAD are all it knows"));
    }
    let target = head.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Request { path: decode(path), query: query.to_string() })
}

/// Whether a `Host` names this server: `localhost` or a loopback address, with its port. A server told to listen for others
/// answers to any address too, but never to a name, which anybody could make point here.
fn is_ours(host: &str, address: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, Some(80)),
    };
    if port != Some(address.port()) {
        return false;
    }
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || !address.ip().is_loopback())
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
                continue;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<String, u16> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut head = httparse::Request::new(&mut headers);
        head.parse(text.as_bytes()).unwrap();
        accept(&head, "127.0.0.1:8717".parse().unwrap()).map(|request| request.path).map_err(|answer| answer.status)
    }

    #[test]
    fn only_this_machine_is_a_host() {
        for host in ["127.0.0.1:8717", "localhost:8717", "LOCALHOST:8717", "[::1]:8717", "127.0.0.2:8717"] {
            assert_eq!(asked(&format!("GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n")), Ok("/x".into()), "{host}");
        }
        for host in [
            "evil.example:8717",
            "127.0.0.1.evil.example:8717",
            "localhost:80",
            "localhost",
            "192.168.1.2:8717",
            "",
            "[::1]",
            "localhost.:8717",
        ] {
            assert_eq!(asked(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")), Err(403), "{host}");
        }
        assert_eq!(asked("GET / HTTP/1.1\r\n\r\n"), Err(403));
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: localhost:8717\r\nHost: evil:8717\r\n\r\n"), Err(400));
    }

    #[test]
    fn a_server_for_others_answers_to_addresses_and_never_to_names() {
        let all: SocketAddr = "0.0.0.0:8717".parse().unwrap();
        assert!(is_ours("192.168.1.2:8717", all) && is_ours("localhost:8717", all));
        assert!(!is_ours("evil.example:8717", all));
    }

    #[test]
    fn foreign_origins_are_refused() {
        let with = |line: &str| asked(&format!("GET / HTTP/1.1\r\nHost: localhost:8717\r\n{line}\r\n\r\n"));
        assert!(with("Origin: http://localhost:8717").is_ok());
        for origin in ["http://evil.example", "https://localhost:8717", "http://localhost:3000", "null"] {
            assert_eq!(with(&format!("Origin: {origin}")), Err(403), "{origin}");
        }
        assert_eq!(with("Sec-Fetch-Site: cross-site"), Err(403));
        assert!(with("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate").is_ok());
        assert!(with("Sec-Fetch-Site: same-origin").is_ok());
    }

    #[test]
    fn only_reading_is_known() {
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"] {
            assert_eq!(asked(&format!("{method} / HTTP/1.1\r\nHost: localhost:8717\r\n\r\n")), Err(405), "{method}");
        }
    }

    #[test]
    fn queries_are_decoded() {
        let request = Request { path: "/".into(), query: "a=1&node=s%2FN8%20x+y%".into() };
        assert_eq!(request.query("node").unwrap(), "s/N8 x y%");
        assert_eq!(request.query("nod"), None);
    }
}
