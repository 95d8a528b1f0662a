//! `repro ui`: the report's page on this machine, following a run while it goes on. Looks only: there is nothing to write to.

mod http;
mod watch;

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;

use super::context::Context;
use super::{CliError, Exit, Global, Which, print, report};
use crate::engine::store::Access;
use http::{Answer, Request};
use watch::Watch;

/// Show the report live in a browser while a run goes on; serves this machine only and changes nothing.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// The port to listen on; 0 takes any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8717)]
    port: u16,
    /// The address to listen on; others than this machine can see the page only if it is not a loopback address
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    report::report_node(&context)?;
    let listener = TcpListener::bind((args.bind, args.port)).map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => CliError::Wrong(format!(
            "port {} is taken; give another with `--port`, or `--port 0` for any that is free",
            args.port
        )),
        _ => CliError::Io { what: format!("cannot listen on {} port {}", args.bind, args.port), source },
    })?;
    let address = listener.local_addr().map_err(|source| CliError::Io { what: "the port is gone".into(), source })?;
    let url = format!("http://{address}/");
    if global.json {
        print(&format!("{}\n", serde_json::json!({"url": url})));
    } else {
        print(&format!("{url} follows profile {}; Ctrl-C ends it\n", context.graph.profile));
        if !args.bind.is_loopback() {
            eprintln!("warning: {} is no loopback address: whoever reaches this machine can read the page", args.bind);
        }
    }
    if args.open {
        open_browser(&url);
    }
    let watch = Arc::new(Watch::new(global.clone(), args.which.clone(), context));
    http::serve(&listener, address, move |request| answer(&watch, request));
    Ok(Exit::Ok)
}

fn answer(watch: &Watch, request: &Request) -> Answer {
    match request.path.as_str() {
        "/" => match watch.page() {
            Ok(page) => Answer::html(page),
            Err(error) => Answer::text(500, &error.to_string()),
        },
        "/api/live" => Answer::json(watch.live()),
        "/api/facts" => Answer::json(watch.facts()),
        "/api/content" => match watch.content() {
            Ok(part) => Answer::html(part),
            Err(error) => Answer::text(500, &error.to_string()),
        },
        "/api/log" => match request.query("node").and_then(|node| watch.log(&node)) {
            Some(text) => Answer::text(200, &text),
            None => Answer::text(404, "no such node, or it has no log"),
        },
        _ => Answer::text(404, "there is nothing here"),
    }
}

/// A convenience: whoever has no such program opens the address by hand.
fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let quiet = || std::process::Stdio::null();
    let started = std::process::Command::new(program).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    if started.is_err() {
        eprintln!("`{program}` is not there to open a browser; open {url} by hand");
    }
}
