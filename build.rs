//! Computes, for every stage kind, the fingerprint of the code behind it. Runs at build time, so nobody has to remember a version bump.
//!
//! A kind is a file `src/stage/<kind>.rs`. Its code is that file and every file of ours it reaches through `crate::`, `super::`
//! and `self::` paths, without the pipeline (`src/engine`) and the command line (`src/cli`), which move bytes but do not make
//! them. A file counts by its tokens: comments, documentation, white space and `#[cfg(test)]` items do not change a
//! fingerprint. Crates named by those files count with the versions that Cargo.lock holds, and so do the crates behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens as _;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=Cargo.lock");
    println!("cargo:rerun-if-changed=build.rs");
    let version = std::process::Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .arg("--version")
        .output()
        .ok()
        .and_then(|out| String::from_utf8(out.stdout).ok())
        .unwrap_or_default();
    println!("cargo:rustc-env=REPRO_RUSTC={}", version.trim());
    println!("cargo:rustc-env=REPRO_ARCH={}", std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default());
    println!("cargo:rustc-env=REPRO_TARGET={}", std::env::var("TARGET").unwrap_or_default());

    // A worker is started for every node: an executable at a fixed address needs no relocations, which are half of its start.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }

    let lock = Lock::read(Path::new("Cargo.lock"));
    let mut out = String::from("pub static CODE: &[(&str, Code)] = &[\n");
    let mut kinds: Vec<PathBuf> =
        fs::read_dir("src/stage").map(|dir| dir.flatten().map(|entry| entry.path()).collect()).unwrap_or_default();
    kinds.sort();
    for path in kinds {
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if stem == "mod" || path.extension().is_none_or(|ext| ext != "rs") {
            continue;
        }
        let code = closure(&path, &lock);
        let mut whole = blake3::Hasher::new();
        let _ = writeln!(out, "    ({:?}, Code {{ files: &[", stem.replace('_', "-"));
        for (file, digest) in &code.files {
            let _ = writeln!(out, "        ({file:?}, {digest:?}),");
            whole.update(file.as_bytes()).update(digest.as_bytes());
        }
        out.push_str("    ], crates: &[\n");
        for (name, version) in &code.crates {
            let _ = writeln!(out, "        ({name:?}, {version:?}),");
            whole.update(name.as_bytes()).update(version.as_bytes());
        }
        let _ = writeln!(out, "    ], digest: {:?} }}),", whole.finalize().to_hex()[..32].to_string());
    }
    out.push_str("];\n");
    let target = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("code.rs");
    fs::write(target, out).expect("OUT_DIR is writable");
}

struct CodeOfKind {
    files: BTreeMap<String, String>,
    crates: BTreeMap<String, String>,
}

fn closure(kind: &Path, lock: &Lock) -> CodeOfKind {
    let mut files = BTreeMap::new();
    let mut direct = BTreeSet::new();
    let mut waiting = vec![kind.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let name = path.to_string_lossy().replace('\\', "/");
        if files.contains_key(&name) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let Ok(mut file) = syn::parse_file(&text) else {
            // The compiler is about to report this file; until then its bytes stand for it.
            files.insert(name, blake3::hash(text.as_bytes()).to_hex().to_string());
            continue;
        };
        Strip.visit_file_mut(&mut file);
        for included in included(&path, &file) {
            let bytes = fs::read(&included).unwrap_or_default();
            files.insert(included.to_string_lossy().replace('\\', "/"), blake3::hash(&bytes).to_hex()[..32].to_string());
        }
        let mut seen = Paths { found: Vec::new() };
        seen.visit_file(&file);
        for segments in seen.found {
            match segments[0].as_str() {
                "crate" | "super" | "self" => waiting.extend(resolve(&path, &segments)),
                first => {
                    if lock.direct.contains_key(first) {
                        direct.insert(first.to_string());
                    }
                }
            }
        }
        files.insert(name, blake3::hash(file.to_token_stream().to_string().as_bytes()).to_hex()[..32].to_string());
    }
    CodeOfKind { files, crates: lock.behind(&direct) }
}

/// Files that become part of the program by `include_str!` and `include_bytes!`: styles, scripts, fonts.
fn included(from: &Path, file: &syn::File) -> Vec<PathBuf> {
    struct Includes(Vec<String>);
    impl<'ast> Visit<'ast> for Includes {
        fn visit_macro(&mut self, mac: &'ast syn::Macro) {
            if mac.path.segments.last().is_some_and(|last| last.ident == "include_str" || last.ident == "include_bytes")
                && let Ok(name) = mac.parse_body::<syn::LitStr>()
            {
                self.0.push(name.value());
            }
            syn::visit::visit_macro(self, mac);
        }
    }
    let mut found = Includes(Vec::new());
    found.visit_file(file);
    let folder = from.parent().expect("a source file lies in a folder");
    found.0.iter().map(|name| folder.join(name)).collect()
}

/// Drops what cannot change a result: documentation and tests.
struct Strip;

impl VisitMut for Strip {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.attrs.retain(|attr| !attr.path().is_ident("doc"));
        file.items.retain(|item| !is_test(item));
        syn::visit_mut::visit_file_mut(self, file);
    }
    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_test(item));
        }
        syn::visit_mut::visit_item_mod_mut(self, module);
    }
    fn visit_attributes_mut(&mut self, attrs: &mut Vec<syn::Attribute>) {
        attrs.retain(|attr| !attr.path().is_ident("doc"));
    }
}

fn is_test(item: &syn::Item) -> bool {
    let attrs = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        _ => return false,
    };
    attrs.iter().any(|attr| attr.path().is_ident("cfg") && attr.to_token_stream().to_string().replace(' ', "") == "#[cfg(test)]")
}

struct Paths {
    found: Vec<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.found.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        flatten(&item.tree, &mut Vec::new(), &mut self.found);
    }
    // `vec![crate::paper::X]`: a macro's tokens are opaque to syn, so look for paths in them by hand.
    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let text = mac.tokens.to_string().replace(' ', "");
        for (at, _) in text.match_indices("crate::") {
            let path: String = text[at..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
            self.found.push(path.split("::").map(str::to_string).collect());
        }
        syn::visit::visit_macro(self, mac);
    }
}

fn flatten(tree: &syn::UseTree, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match tree {
        syn::UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, found);
            prefix.pop();
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| flatten(item, prefix, found)),
        syn::UseTree::Name(syn::UseName { ident }) | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
            let mut path = prefix.clone();
            path.push(ident.to_string());
            found.push(path);
        }
        syn::UseTree::Glob(_) => found.push(prefix.clone()),
    }
}

/// The files a path of ours leads to: the deepest module it names, and, where that is a folder, all of the folder.
fn resolve(from: &Path, segments: &[String]) -> Vec<PathBuf> {
    let own = if from.file_name().is_some_and(|name| name == "mod.rs") {
        from.parent().expect("a source file lies in a folder").to_path_buf()
    } else {
        from.with_extension("")
    };
    let mut at = match segments[0].as_str() {
        "crate" => PathBuf::from("src"),
        "super" => own.parent().unwrap_or(Path::new("src")).to_path_buf(),
        _ => own,
    };
    let mut deepest = None;
    for segment in &segments[1..] {
        if segment == "super" {
            at = at.parent().unwrap_or(Path::new("src")).to_path_buf();
            continue;
        }
        at.push(segment);
        let file = at.with_extension("rs");
        if file.is_file() {
            deepest = Some((file, false));
        } else if at.join("mod.rs").is_file() {
            deepest = Some((at.join("mod.rs"), true));
        } else {
            break;
        }
    }
    let Some((file, folder)) = deepest else { return Vec::new() };
    if file.starts_with("src/engine") || file.starts_with("src/cli") {
        return Vec::new();
    }
    if folder { sources(file.parent().expect("mod.rs lies in a folder")) } else { vec![file] }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs" || ext == "cu") {
            found.push(path);
        }
    }
    found
}

/// Cargo.lock: which version of which crate, and what each needs.
struct Lock {
    packages: BTreeMap<String, Vec<(String, Vec<String>)>>,
    /// The crates named in Cargo.toml, by the name the code uses.
    direct: BTreeMap<String, String>,
}

impl Lock {
    fn read(path: &Path) -> Lock {
        let parsed: toml::Table = fs::read_to_string(path).unwrap_or_default().parse().unwrap_or_default();
        let mut packages: BTreeMap<String, Vec<(String, Vec<String>)>> = BTreeMap::new();
        for package in parsed.get("package").and_then(|list| list.as_array()).into_iter().flatten() {
            let text = |field: &str| package.get(field).and_then(|value| value.as_str()).unwrap_or_default().to_string();
            let needs = package.get("dependencies").and_then(|list| list.as_array()).into_iter().flatten();
            let needs = needs.filter_map(|need| need.as_str().map(str::to_string)).collect();
            packages.entry(text("name")).or_default().push((text("version"), needs));
        }
        let ours = packages.get("repro").map(|versions| versions[0].1.clone()).unwrap_or_default();
        let direct = ours.into_iter().map(|need| (need.split(' ').next().unwrap_or_default().replace('-', "_"), need)).collect();
        Lock { packages, direct }
    }

    fn behind(&self, names: &BTreeSet<String>) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut waiting: Vec<String> = names.iter().filter_map(|name| self.direct.get(name).cloned()).collect();
        while let Some(need) = waiting.pop() {
            let mut words = need.split(' ');
            let name = words.next().unwrap_or_default();
            let wanted = words.next();
            for (version, needs) in self.packages.get(name).into_iter().flatten() {
                if wanted.is_some_and(|wanted| wanted != version) {
                    continue;
                }
                if found.insert(format!("{name} {version}"), version.clone()).is_none() {
                    waiting.extend(needs.iter().cloned());
                }
            }
        }
        let mut by_name: BTreeMap<String, String> = BTreeMap::new();
        for (name_version, version) in found {
            let name = name_version.split(' ').next().unwrap_or_default().to_string();
            by_name
                .entry(name)
                .and_modify(|all| {
                    all.push('+');
                    all.push_str(&version);
                })
                .or_insert(version);
        }
        by_name
    }
}
