//! The documentation's own checks: rustdoc without warnings, relative links that lead somewhere,
//! and commands that the programs accept.

use crate::sh;
use anyhow::{Context, Result, bail};
use clap::Parser;
use pulldown_cmark::{CodeBlockKind, Event, Options, Tag, TagEnd};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Languages of fenced blocks that hold commands to type.
const SHELLS: &[&str] = &["sh", "bash", "console"];
/// Programs of this workspace, asked with `--parse-only` whether they take a command line.
const PROGRAMS: &[&str] = &["audiocpp_cli", "audiocpp_server"];

/// Builds rustdoc with warnings as errors, then checks every page of [`pages`].
pub fn run() -> Result<()> {
    let mut rustdoc = sh::cargo(["doc", "--locked", "--workspace", "--no-deps"]);
    sh::run(rustdoc.env("RUSTDOCFLAGS", "-D warnings"))?;
    let pages = pages()?;
    let mut commands = Vec::new();
    let mut faults = Vec::new();
    for path in &pages {
        let page = Page::read(path)?;
        faults.extend(page.broken_links());
        commands.extend(page.commands);
    }
    let checked = check_commands(&commands, &mut faults)?;
    if !faults.is_empty() {
        bail!(
            "{} faults in the documentation:\n{}",
            faults.len(),
            faults.join("\n")
        );
    }
    println!(
        "{} pages: links lead somewhere, {checked} commands parse",
        pages.len()
    );
    Ok(())
}

/// The Markdown files of the checkout, without hidden folders and what builds leave behind.
fn pages() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![sh::root()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            let hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
            if path.is_dir() && !hidden && !path.join("CACHEDIR.TAG").exists() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What the checks need of one Markdown file.
#[derive(Default)]
struct Page {
    path: PathBuf,
    /// Destinations of links and pictures.
    links: Vec<String>,
    /// Fragments that its headings answer to, as GitHub forms them.
    anchors: BTreeSet<String>,
    commands: Vec<Documented>,
}

/// A command line that a page tells the reader to type.
struct Documented {
    place: String,
    words: Vec<String>,
}

impl Page {
    fn read(path: &Path) -> Result<Page> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Ok(Page::parse(path, &text))
    }

    fn parse(path: &Path, text: &str) -> Page {
        let mut page = Page {
            path: path.to_owned(),
            ..Page::default()
        };
        let (mut heading, mut shell) = (None, false);
        let parser = pulldown_cmark::Parser::new_ext(text, Options::ENABLE_TABLES);
        for (event, range) in parser.into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    page.anchors
                        .extend(heading.take().map(|title| anchor(&title)));
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    shell = SHELLS.contains(&language.as_ref());
                }
                Event::End(TagEnd::CodeBlock) => shell = false,
                Event::Text(block) if shell => {
                    let line = text[..range.start].lines().count() + 1;
                    page.add_commands(&block, line);
                }
                Event::Text(part) | Event::Code(part) => {
                    if let Some(title) = &mut heading {
                        title.push_str(&part);
                    }
                }
                _ => {}
            }
        }
        page
    }

    /// Takes the commands out of a shell block that begins at `first_line`. With `$ ` prompts, the
    /// other lines are output.
    fn add_commands(&mut self, block: &str, first_line: usize) {
        let prompts = block.lines().any(|line| line.starts_with("$ "));
        let mut lines = block.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            let Some(start) = (if prompts {
                line.strip_prefix("$ ")
            } else {
                Some(line)
            }) else {
                continue;
            };
            let mut command = start.to_owned();
            while command.ends_with('\\') {
                command.pop();
                command.push_str(lines.next().map_or("", |(_, more)| more));
            }
            let place = format!("{}:{}", sh::relative(&self.path), first_line + at);
            if let Ok(words) = shell_words::split(&command) {
                let words = simple_command(words);
                if !words.is_empty() {
                    self.commands.push(Documented { place, words });
                }
            }
        }
    }

    fn broken_links(&self) -> Vec<String> {
        let broken = |link: &&String| !self.leads_somewhere(link);
        let say = |link: &String| {
            format!(
                "{}: link to `{link}` leads nowhere",
                sh::relative(&self.path)
            )
        };
        self.links.iter().filter(broken).map(say).collect()
    }

    /// Whether a relative link names a file (and heading) that exists; other links are not followed.
    fn leads_somewhere(&self, link: &str) -> bool {
        if link.contains("://") || link.starts_with("mailto:") {
            return true;
        }
        let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
        if file.is_empty() {
            return self.anchors.contains(fragment);
        }
        let target = self
            .path
            .parent()
            .expect("a page lies in a folder")
            .join(file);
        if fragment.is_empty() || target.extension().is_none_or(|e| e != "md") {
            return target.exists();
        }
        Page::read(&target).is_ok_and(|page| page.anchors.contains(fragment))
    }
}

/// The first program and its arguments: without variables before it, redirections, pipes, comments.
fn simple_command(words: Vec<String>) -> Vec<String> {
    let variable = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let ends = |word: &String| {
        ["|", "&&", "||", ";", "&", "#"].contains(&word.as_str()) || word.starts_with(['>', '<'])
    };
    words
        .into_iter()
        .skip_while(variable)
        .take_while(|word| !ends(word))
        .collect()
}

/// A heading's fragment on GitHub: lower case, punctuation dropped, spaces to hyphens.
fn anchor(title: &str) -> String {
    title
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Asks each program whether it takes the documented commands; returns how many were asked.
fn check_commands(commands: &[Documented], faults: &mut Vec<String>) -> Result<usize> {
    let of = |word: &String| {
        let name = Path::new(word).file_name()?;
        PROGRAMS.iter().find(|program| name == **program)
    };
    if commands.iter().any(|c| of(&c.words[0]).is_some()) {
        sh::run(&mut sh::cargo([
            "build",
            "--locked",
            "--package",
            "audiocpp-cli",
            "--package",
            "audiocpp-server",
        ]))?;
    }
    let mut checked = 0;
    for Documented { place, words } in commands {
        let complaint = match of(&words[0]) {
            Some(program) => refused_by(program, &words[1..])?,
            None if words.starts_with(&["cargo".into(), "xtask".into()]) => {
                crate::Xtask::try_parse_from(&words[1..])
                    .err()
                    .and_then(complaint)
            }
            None => continue,
        };
        checked += 1;
        if let Some(complaint) = complaint {
            faults.push(format!("{place}: `{}`: {complaint}", words.join(" ")));
        }
    }
    Ok(checked)
}

/// `--help` and `--version` come as errors from clap too, but are fine.
fn complaint(error: clap::Error) -> Option<String> {
    error.use_stderr().then(|| error.to_string())
}

fn refused_by(program: &str, args: &[String]) -> Result<Option<String>> {
    let output = Command::new(sh::program(program, "debug"))
        .arg("--parse-only")
        .args(args)
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok((!output.status.success()).then_some(complaint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page::parse(&sh::root().join("README.md"), text)
    }

    fn commands(text: &str) -> Vec<String> {
        page(text)
            .commands
            .iter()
            .map(|c| c.words.join(" "))
            .collect()
    }

    #[test]
    fn only_lines_after_a_prompt_are_commands_where_there_are_prompts() {
        let text = "```console\n$ audiocpp_cli models list\nwhisper-base 145 MB\n```\n";
        assert_eq!(commands(text), ["audiocpp_cli models list"]);
        assert_eq!(page(text).commands[0].place, "README.md:2");
    }

    #[test]
    fn variables_pipes_comments_and_continuations_are_understood() {
        let text =
            "```sh\nGGML_CUDA=1 audiocpp_cli \\\n  doctor | less\ncargo xtask test # all\n```\n";
        assert_eq!(commands(text), ["audiocpp_cli doctor", "cargo xtask test"]);
        assert!(commands("```rust\naudiocpp_cli doctor\n```\n").is_empty());
    }

    #[test]
    fn links_to_missing_files_and_headings_are_found() {
        let text = "# Its name\n[a](Cargo.toml) [b](gone.md) [c](#its-name) [d](#gone) \
                    [e](https://example.org/x) [f](docs/architecture.md#decisions) \
                    [g](docs/architecture.md#gone)";
        let broken = page(text).broken_links();
        let named = |link: &str| format!("README.md: link to `{link}` leads nowhere");
        assert_eq!(
            broken,
            ["gone.md", "#gone", "docs/architecture.md#gone"].map(named)
        );
    }

    #[test]
    fn pages_are_found_in_all_folders_but_not_in_build_output() {
        let pages: Vec<String> = pages()
            .unwrap()
            .iter()
            .map(|page| sh::relative(page))
            .collect();
        for page in [
            "README.md",
            "docs/testing.md",
            "tests/data/whisper/README.md",
        ] {
            assert!(pages.contains(&page.into()), "{page} is not in {pages:?}");
        }
        assert!(
            !pages.iter().any(|page| page.starts_with("target")),
            "{pages:?}"
        );
    }

    #[test]
    fn documented_tasks_must_parse() {
        let text =
            "```sh\ncargo xtask test --quick\ncargo xtask tset\ncargo xtask test --fast\n```\n";
        let mut faults = Vec::new();
        assert_eq!(
            check_commands(&page(text).commands, &mut faults).unwrap(),
            3
        );
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            faults[0].starts_with("README.md:3: `cargo xtask tset`"),
            "{}",
            faults[0]
        );
    }
}
