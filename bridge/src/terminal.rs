//! sluice_line_* (rustyline) and sluice_progress_* (indicatif) for the command line program: see
//! include/sluice_bridge.h.

use crate::ffi::*;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};

pub const LINE_TEXT: i32 = 0;
pub const LINE_INTERRUPTED: i32 = 1;
pub const LINE_EOF: i32 = 2;

/// Lines of history kept, in memory and in the file.
const MAX_HISTORY: usize = 1_000;

pub struct SluiceLine {
    editor: DefaultEditor,
    history_path: Option<String>,
}

impl SluiceLine {
    fn new(history_path: &str) -> Outcome<SluiceLine> {
        let config = Config::builder()
            .max_history_size(MAX_HISTORY)
            .map_err(error)?
            .auto_add_history(false)
            .build();
        let mut editor = DefaultEditor::with_config(config).map_err(error)?;
        let history_path = (!history_path.is_empty()).then(|| history_path.to_string());
        if let Some(path) = &history_path {
            match editor.load_history(path) {
                Err(ReadlineError::Io(e)) if e.kind() == std::io::ErrorKind::NotFound => {}
                other => {
                    other.map_err(|e| error(format!("reading the history file {path}: {e}")))?
                }
            }
        }
        Ok(SluiceLine { editor, history_path })
    }

    fn read(&mut self, prompt: &str, line: &mut Vec<u8>) -> Outcome<i32> {
        line.clear();
        match self.editor.readline(prompt) {
            Ok(text) => {
                if !text.trim().is_empty() {
                    self.editor.add_history_entry(text.as_str()).map_err(error)?;
                }
                line.extend_from_slice(text.as_bytes());
                Ok(LINE_TEXT)
            }
            Err(ReadlineError::Interrupted) => Ok(LINE_INTERRUPTED),
            Err(ReadlineError::Eof) => Ok(LINE_EOF),
            Err(e) => Err(error(format!("reading a line: {e}"))),
        }
    }

    /// Appends this session's lines, so that two sessions do not undo each other.
    fn save(&mut self) -> Outcome {
        if let Some(path) = &self.history_path {
            self.editor
                .append_history(path)
                .map_err(|e| error(format!("writing the history file {path}: {e}")))?;
        }
        Ok(())
    }
}

#[no_mangle]
pub unsafe extern "C" fn sluice_line_new(
    history_path: SluiceStr,
    out: *mut *mut SluiceLine,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || give(out, SluiceLine::new(text(history_path, "the history path")?)?))
}

#[no_mangle]
pub unsafe extern "C" fn sluice_line_free(line: *mut SluiceLine) {
    release(line);
}

#[no_mangle]
pub unsafe extern "C" fn sluice_line_read(
    line: *mut SluiceLine,
    prompt: SluiceStr,
    out: *mut SluiceBytes,
    kind: *mut i32,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let line = exclusive(line, "line")?;
        let prompt = text(prompt, "the prompt")?;
        fill(out, |bytes| {
            let ended = line.read(prompt, bytes)?;
            store(kind, ended)
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_line_save(line: *mut SluiceLine, err: *mut SluiceBytes) -> i32 {
    guard(err, || exclusive(line, "line")?.save())
}

pub const PROGRESS_COUNT: u32 = 0;
pub const PROGRESS_BYTES: u32 = 1;

pub struct SluiceProgress(ProgressBar);

impl SluiceProgress {
    fn new(total: u64, unit: u32, message: &str) -> Outcome<SluiceProgress> {
        let amount = match unit {
            PROGRESS_COUNT => "{pos}/{len}",
            PROGRESS_BYTES => "{bytes}/{total_bytes}",
            other => return Err(bad_argument(format!("unknown progress unit {other}"))),
        };
        let style = format!("{{msg}} [{{bar:30}}] {amount} {{eta}}");
        let style = ProgressStyle::with_template(&style).map_err(error)?.progress_chars("=> ");
        // Draws nothing if stderr is no terminal.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        bar.set_style(style);
        bar.set_message(message.to_string());
        Ok(SluiceProgress(bar))
    }
}

#[no_mangle]
pub unsafe extern "C" fn sluice_progress_new(
    total: u64,
    unit: u32,
    message: SluiceStr,
    out: *mut *mut SluiceProgress,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || give(out, SluiceProgress::new(total, unit, text(message, "the message")?)?))
}

#[no_mangle]
pub unsafe extern "C" fn sluice_progress_set(
    progress: *mut SluiceProgress,
    position: u64,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        exclusive(progress, "progress")?.0.set_position(position);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_progress_message(
    progress: *mut SluiceProgress,
    message: SluiceStr,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let message = text(message, "the message")?.to_string();
        exclusive(progress, "progress")?.0.set_message(message);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_progress_free(progress: *mut SluiceProgress) {
    if let Some(progress) = progress.as_ref() {
        let bar = progress.0.clone();
        let _ = guard(std::ptr::null_mut(), || {
            bar.finish_and_clear();
            Ok(())
        });
    }
    release(progress);
}
