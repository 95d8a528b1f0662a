//! `repro data head|stats`: look at a corpus or at token shards. Reading and measuring belong to `paper::data::look`.

use super::{CliError, Exit, Global, print};
use crate::paper::data::Error;
use crate::paper::data::look::{self, Shown, Stats, TextStats, TokenStats};
use crate::paper::data::measure::Entropy;
use crate::paper::data::tokenizer::encoder::Encoder;
use std::fmt::Write;
use std::path::PathBuf;

/// Look at documents and tokens
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the first documents of a corpus, or of token shards decoded back to text
    Head(HeadArgs),
    /// Measure a corpus or token shards: lengths, vocabulary, repetition, compressibility, n-gram entropies
    Stats(StatsArgs),
}

#[derive(Debug, clap::Args)]
struct HeadArgs {
    #[command(flatten)]
    what: What,
    /// How many documents to show
    #[arg(short = 'n', long, default_value_t = 5)]
    count: usize,
    /// How many documents to pass over first
    #[arg(long, default_value_t = 0)]
    skip: usize,
    /// Characters of each document to show; 0 shows all
    #[arg(long, default_value_t = 400)]
    chars: usize,
    /// Show the token ids of shards as well
    #[arg(long)]
    ids: bool,
}

#[derive(Debug, clap::Args)]
struct StatsArgs {
    #[command(flatten)]
    what: What,
    /// Stop after so many bytes of text, or so many tokens; 0 measures all
    #[arg(long, default_value_t = 200_000_000)]
    most: u64,
}

#[derive(Debug, clap::Args)]
struct What {
    /// A Parquet file or a folder of them: a corpus, or token shards
    path: PathBuf,
    /// The output folder of the tokenizer step, to decode token shards with
    #[arg(long, value_name = "FOLDER")]
    tokenizer: Option<PathBuf>,
    /// The column that holds the text of a corpus
    #[arg(long, default_value = "text", value_name = "COLUMN")]
    text_column: String,
}

/// What to print. The caller prints it, and the chain of an error.
pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    print(&told(global, args)?);
    Ok(Exit::Ok)
}

fn told(global: &Global, args: &Args) -> Result<String, Error> {
    match &args.command {
        Command::Head(args) => {
            let encoder = open(&args.what)?;
            let mut shown = look::head(&args.what.path, args.count, args.skip, &args.what.text_column, encoder.as_ref())?;
            if args.chars > 0 {
                for document in &mut shown {
                    cut(&mut document.text, args.chars);
                }
            }
            Ok(if global.json { json(&shown) } else { told_documents(&shown, args.ids) })
        }
        Command::Stats(args) => {
            let encoder = open(&args.what)?;
            let stats = look::stats(&args.what.path, &args.what.text_column, args.most, encoder.as_ref(), &mut |_| ())?;
            Ok(match &stats {
                _ if global.json => json(&stats),
                Stats::Text(stats) => told_text(stats),
                Stats::Tokens(stats) => told_tokens(stats),
            })
        }
    }
}

fn open(what: &What) -> Result<Option<Encoder>, Error> {
    what.tokenizer.as_deref().map(Encoder::open).transpose()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("what is shown is plain data") + "\n"
}

fn cut(text: &mut String, chars: usize) {
    if let Some((at, _)) = text.char_indices().nth(chars) {
        text.truncate(at);
        text.push_str(" ...");
    }
}

fn told_documents(shown: &[Shown], ids: bool) -> String {
    let mut out = String::new();
    for document in shown {
        out += &format!("== {}  ({})", document.id, document.file.display());
        if !document.ids.is_empty() {
            out += &format!("  {} tokens", document.ids.len());
        }
        out.push('\n');
        if document.text.is_empty() && !ids {
            out += "(give --tokenizer to decode it, or --ids to see its ids)";
        }
        out += &document.text;
        out.push('\n');
        if ids {
            out += &document.ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

fn bars(out: &mut String, title: &str, bins: &[(u64, u64)]) {
    let most = bins.iter().map(|bin| bin.1).max().unwrap_or(1).max(1);
    *out += &format!("{title}\n");
    for (from, count) in bins {
        let bar = "#".repeat((count * 40).div_ceil(most) as usize);
        let _ = writeln!(out, "  {from:>8}+ {count:>9} {bar}");
    }
}

fn told_entropies(out: &mut String, unit: &str, entropies: &[Entropy]) {
    *out += &format!("bits per {unit} by context  ");
    *out += &entropies.iter().map(|entropy| format!("{}: {:.3}", entropy.context, entropy.bits)).collect::<Vec<_>>().join("   ");
    out.push('\n');
}

fn told_text(stats: &TextStats) -> String {
    let mut out = format!(
        "documents  {} in {} files, {} bytes; rejected: {}\n",
        stats.documents,
        stats.files,
        stats.bytes,
        stats.rejects.told()
    );
    let words = &stats.words;
    let _ = writeln!(
        out,
        "words      {}, {} distinct, {} of them once; Heaps {:.2}, Zipf {:.2}",
        words.words, words.distinct, words.once, words.heaps, words.zipf
    );
    let _ = writeln!(out, "zstd -3    {:.2} to 1", stats.zstd_ratio);
    let _ = writeln!(
        out,
        "repeated   {:.2}% of documents, {:.2}% of sentences",
        100.0 * stats.repeated_documents,
        100.0 * stats.repeated_sentences
    );
    told_entropies(&mut out, "byte", &stats.byte_entropies);
    bars(&mut out, "documents by bytes", &stats.lengths);
    out
}

fn told_tokens(stats: &TokenStats) -> String {
    let mut out = format!("documents  {} in {} shards, {} tokens\n", stats.documents, stats.files, stats.tokens);
    let share = |used: usize| 100.0 * used as f64 / stats.vocabulary.max(1) as f64;
    let _ = writeln!(
        out,
        "vocabulary {}: {} used ({:.1}%), {} at least 100 times ({:.1}%)",
        stats.vocabulary,
        stats.used,
        share(stats.used),
        stats.used_100,
        share(stats.used_100)
    );
    told_entropies(&mut out, "token", &stats.token_entropies);
    out += "commonest ";
    for (id, token, count) in &stats.commonest {
        let _ = write!(out, " {id}{} x{count}", if token.is_empty() { String::new() } else { format!(" {token:?}") });
    }
    out.push('\n');
    bars(&mut out, "documents by tokens", &stats.lengths);
    out
}
