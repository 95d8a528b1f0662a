//! One request: follows redirects, waits when told to, tries again when it makes sense.
//! The hub's token goes to the hub and to nobody else, and into no message.

use crate::paper::data::Error;
use crate::paper::data::random::mix;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use ureq::http::{Response, Uri};
use ureq::{Agent, Body};

/// How to reach the outside: nothing here changes what is fetched.
#[derive(Clone)]
pub struct Network {
    /// Where the dataset hub is.
    pub hub: String,
    /// Sent to the hub only.
    pub token: Option<String>,
    /// Files fetched at a time.
    pub parallel: usize,
    /// Failures in a row, without a byte gained, after which a file is given up.
    pub attempts: u32,
    /// The first wait after a failure; it doubles from one to the next.
    pub first_wait: Duration,
    /// The longest wait, even where the server asks for a longer one.
    pub longest_wait: Duration,
    /// A connection that is silent for so long counts as lost.
    pub silence: Duration,
    /// Where unfinished files are kept from one run to the next; by default in the output folder.
    pub partial: Option<PathBuf>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            hub: "https://huggingface.co".into(),
            token: None,
            parallel: 4,
            attempts: 8,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(120),
            silence: Duration::from_secs(60),
            partial: None,
        }
    }
}

impl Network {
    /// Takes the hub's address from `HF_ENDPOINT` and the token from `HF_TOKEN`, if they are set.
    pub fn from_environment() -> Self {
        let variable =
            |name| std::env::var(name).ok().map(|value: String| value.trim().to_owned()).filter(|value| !value.is_empty());
        let default = Self::default();
        Self {
            hub: variable("HF_ENDPOINT").unwrap_or(default.hub).trim_end_matches('/').to_owned(),
            token: variable("HF_TOKEN"),
            ..Self::default()
        }
    }

    fn agent(&self) -> Agent {
        Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed here, where the token can be kept back.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(self.silence))
            .timeout_recv_response(Some(self.silence))
            .timeout_per_read(Some(self.silence))
            .user_agent(concat!("repro/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent()
    }

    /// How long to wait after failure number `failures`, counted from 1.
    pub fn wait(&self, failures: u32, asked: Option<Duration>, salt: u64) -> Duration {
        let doubled = self.first_wait * 2u32.saturating_pow(failures.saturating_sub(1).min(16));
        // Up to a quarter more, so that many clients do not come back at the same moment.
        let spread = doubled.mul_f64((mix(salt ^ u64::from(failures)) % 256) as f64 / 1024.0);
        asked.unwrap_or(doubled + spread).min(self.longest_wait)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "(hidden)");
        out.debug_struct("Network")
            .field("hub", &self.hub)
            .field("token", &token)
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}

/// Why a request gave nothing.
#[derive(Debug)]
pub enum Failure {
    /// May go away: a lost connection, a busy server. Carries how long the server asked to wait.
    Passing { what: String, wait: Option<Duration> },
    /// Will not go away by asking again.
    Final(Error),
}

impl Failure {
    pub fn passing(what: impl fmt::Display) -> Self {
        Self::Passing { what: what.to_string(), wait: None }
    }
}

const MOST_REDIRECTS: usize = 10;

/// A client for one thread; connections are kept between requests.
pub struct Client<'a> {
    network: &'a Network,
    agent: Agent,
}

impl<'a> Client<'a> {
    pub fn new(network: &'a Network) -> Self {
        Self { network, agent: network.agent() }
    }

    /// Asks for `url`, from byte `from` on. Gives any answer of success, and 416 for a range beyond the end.
    pub fn get(&self, url: &str, to_hub: bool, from: u64, if_still: Option<&str>) -> Result<Response<Body>, Failure> {
        let bad = |what: String| Failure::Final(Error::BadAddress { address: url.to_owned(), what });
        let hub: Option<Uri> = self.network.hub.parse().ok();
        let mut here: Uri = url.parse().map_err(|error| bad(format!("it cannot be read: {error}")))?;
        for _ in 0..MOST_REDIRECTS {
            let mut request = self.agent.get(here.clone());
            if let Some(token) = &self.network.token
                && to_hub
                && hub.as_ref().is_some_and(|hub| same_origin(hub, &here))
            {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            if from > 0 {
                request = request.header("range", format!("bytes={from}-"));
                if let Some(tag) = if_still {
                    request = request.header("if-range", tag);
                }
            }
            let response = request.call().map_err(|error| match error {
                ureq::Error::BadUri(_) | ureq::Error::Http(_) => bad(error.to_string()),
                other => Failure::passing(other),
            })?;
            match response.status().as_u16() {
                200 | 206 | 416 => return Ok(response),
                301 | 302 | 303 | 307 | 308 => {
                    let to = header(&response, "location").ok_or_else(|| Failure::passing("a redirect to nowhere"))?;
                    here = join(&here, &to).ok_or_else(|| Failure::passing("a redirect that cannot be read"))?;
                }
                status @ (408 | 425 | 429 | 500..=599) => {
                    let wait =
                        header(&response, "retry-after").and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
                    return Err(Failure::Passing { what: format!("the server answered {status}"), wait });
                }
                status => return Err(Failure::Final(Error::Status { url: url.to_owned(), status, hint: hint(status, to_hub) })),
            }
        }
        Err(Failure::Final(Error::Status { url: url.to_owned(), status: 302, hint: "; it redirects without end" }))
    }

    /// The same with patience: for short answers that are read whole.
    pub fn text(&self, url: &str, to_hub: bool) -> Result<(String, Option<String>), Error> {
        let mut failures = 0;
        loop {
            let failure = match self.get(url, to_hub, 0, None) {
                Ok(mut response) => {
                    let next = header(&response, "link").and_then(|link| next_page(&link));
                    match response.body_mut().with_config().limit(64 << 20).read_to_string() {
                        Ok(text) => return Ok((text, next)),
                        Err(error) => Failure::passing(error),
                    }
                }
                Err(failure) => failure,
            };
            failures += 1;
            self.pause(url, failure, failures)?;
        }
    }

    /// Waits after a passing failure; gives up after too many, and at once after a final one.
    pub fn pause(&self, url: &str, failure: Failure, failures: u32) -> Result<(), Error> {
        match failure {
            Failure::Final(error) => Err(error),
            Failure::Passing { what, .. } if failures >= self.network.attempts => {
                Err(Error::GaveUp { url: url.to_owned(), attempts: failures, what })
            }
            Failure::Passing { wait, .. } => {
                let salt = url.bytes().fold(0, |salt, byte| mix(salt ^ u64::from(byte)));
                std::thread::sleep(self.network.wait(failures, wait, salt));
                Ok(())
            }
        }
    }
}

fn hint(status: u16, to_hub: bool) -> &'static str {
    match status {
        401 | 403 if to_hub => "; set HF_TOKEN to a token that may read it",
        404 if to_hub => "; check the name of the dataset, its revision and the path",
        _ => "",
    }
}

pub fn header(response: &Response<Body>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn same_origin(one: &Uri, other: &Uri) -> bool {
    let port = |uri: &Uri| uri.port_u16().or_else(|| if uri.scheme_str() == Some("https") { Some(443) } else { Some(80) });
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    one.scheme_str() == other.scheme_str() && host(one) == host(other) && port(one) == port(other)
}

/// Where a redirect leads: an address of its own, or a path on the same server.
fn join(here: &Uri, to: &str) -> Option<Uri> {
    if to.starts_with("http://") || to.starts_with("https://") {
        return to.parse().ok();
    }
    let (scheme, host) = (here.scheme_str()?, here.authority()?);
    if let Some(rest) = to.strip_prefix("//") {
        return format!("{scheme}://{rest}").parse().ok();
    }
    if to.starts_with('/') {
        return format!("{scheme}://{host}{to}").parse().ok();
    }
    let folder = here.path().rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{scheme}://{host}{folder}/{to}").parse().ok()
}

/// The address of the next page in a `Link` header.
fn next_page(link: &str) -> Option<String> {
    link.split(',').find_map(|part| {
        let (address, kind) = part.split_once(';')?;
        kind.contains("rel=\"next\"").then(|| address.trim().trim_start_matches('<').trim_end_matches('>').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_printed() {
        let network = Network { token: Some("hf_secret".into()), ..Network::default() };
        assert!(!format!("{network:?}").contains("secret"));
    }

    #[test]
    fn origins_are_scheme_host_and_port() {
        let same = |one: &str, other: &str| same_origin(&one.parse().expect("uri"), &other.parse().expect("uri"));
        assert!(same("https://hub.org", "https://HUB.org:443/path"));
        assert!(!same("https://hub.org", "http://hub.org"));
        assert!(!same("https://hub.org", "https://cdn.hub.org"));
        assert!(!same("http://127.0.0.1:80", "http://127.0.0.1:81"));
    }

    #[test]
    fn redirects_are_joined_to_where_they_come_from() {
        let here: Uri = "https://a.b/c/d".parse().expect("uri");
        for (to, there) in
            [("https://x.y/z", "https://x.y/z"), ("/z", "https://a.b/z"), ("z", "https://a.b/c/z"), ("//x/z", "https://x/z")]
        {
            assert_eq!(join(&here, to).expect("joins").to_string(), there);
        }
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let network = Network::default();
        let seconds = |failures, asked| network.wait(failures, asked, 1).as_secs_f64();
        assert!((1.0..1.25).contains(&seconds(1, None)) && (4.0..5.0).contains(&seconds(3, None)));
        assert!((seconds(30, None) - 120.0).abs() < 1e-9);
        assert!((seconds(1, Some(Duration::from_secs(7))) - 7.0).abs() < 1e-9);
        assert!((seconds(1, Some(Duration::from_secs(9999))) - 120.0).abs() < 1e-9);
    }

    #[test]
    fn the_next_page_is_found_in_a_link() {
        assert_eq!(next_page("<https://h/api?cursor=a>; rel=\"next\"").as_deref(), Some("https://h/api?cursor=a"));
        assert_eq!(next_page("<https://h/api>; rel=\"prev\""), None);
    }
}
