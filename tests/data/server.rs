//! A web server of the tests' own, which can be as unreliable as they need.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub headers: HashMap<String, String>,
    /// How many requests for this path came before.
    pub earlier: usize,
}

impl Request {
    /// The first byte asked for.
    pub fn from(&self) -> Option<usize> {
        self.headers.get("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    announce: Option<usize>,
    cut_after: Option<usize>,
    pause: Duration,
}

impl Reply {
    pub fn new(status: u16, body: &[u8]) -> Self {
        Self { status, headers: Vec::new(), body: body.to_vec(), announce: None, cut_after: None, pause: Duration::ZERO }
    }

    /// The whole file, or the part asked for.
    pub fn file(request: &Request, body: &[u8]) -> Self {
        match request.from() {
            Some(from) if from < body.len() => {
                let range = format!("bytes {from}-{}/{}", body.len() - 1, body.len());
                Self::new(206, &body[from..]).header("content-range", &range)
            }
            Some(_) => Self::new(416, b""),
            None => Self::new(200, body),
        }
        .header("etag", "\"v1\"")
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Says the body has so many bytes, whatever it has.
    pub fn announce(mut self, length: usize) -> Self {
        self.announce = Some(length);
        self
    }

    /// Drops the connection after so many bytes of the body.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Waits between pieces of the body.
    pub fn slowly(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

pub struct Server {
    pub url: String,
    log: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (answer, shared) = (Arc::new(answer), log.clone());
        // Ends with the test's process.
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (answer, log) = (answer.clone(), shared.clone());
                std::thread::spawn(move || {
                    let _ = serve(&connection, &*answer, &log);
                    let _ = connection.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        Self { url, log }
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }
}

fn serve(
    connection: &TcpStream,
    answer: &(dyn Fn(&Request) -> Reply + Send + Sync),
    log: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    let request = {
        let mut log = log.lock().unwrap();
        let earlier = log.iter().filter(|request| request.path == path).count();
        let request = Request { path, headers, earlier };
        log.push(request.clone());
        request
    };
    let reply = answer(&request);
    let mut out = connection.try_clone()?;
    let mut head = format!("HTTP/1.1 {} Status\r\nconnection: close\r\n", reply.status);
    head += &format!("content-length: {}\r\n", reply.announce.unwrap_or(reply.body.len()));
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    out.write_all(format!("{head}\r\n").as_bytes())?;
    let body = &reply.body[..reply.cut_after.unwrap_or(reply.body.len()).min(reply.body.len())];
    if reply.pause.is_zero() {
        out.write_all(body)?;
    } else {
        for piece in body.chunks(body.len().div_ceil(20).max(1)) {
            out.write_all(piece)?;
            out.flush()?;
            std::thread::sleep(reply.pause);
        }
    }
    out.flush()
}
