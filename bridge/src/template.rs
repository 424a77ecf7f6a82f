//! Chat templates in the Jinja dialect of Hugging Face transformers (chat_template_utils.py 5.x):
//! the same globals, filters, extensions and treatment of messages. Send + Sync.

use crate::ffi::{bad_argument, error, Failure, Outcome, STATUS_TEMPLATE_RAISE};
use crate::{pyjson, pystr};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Serde};
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};
use serde_json::{Map, Value as Json};
use std::error::Error as _;

/// Steps of one render, one per instruction and per 64 bytes made. 1,000 messages take well below
/// a hundredth; a runaway template ends within a second and some hundred MB.
const FUEL: u64 = 10_000_000;

const NAME: &str = "chat_template";

pub struct ChatTemplate {
    env: Environment<'static>,
    bos: String,
    eos: String,
}

/// The inputs of one render, as JSON texts; `tools` and `kwargs` may be empty.
pub struct RenderInput<'a> {
    pub messages: &'a str,
    pub tools: &'a str,
    pub kwargs: &'a str,
    pub add_generation_prompt: bool,
}

/// What raise_exception leaves in the error, to be told from the template's own faults.
#[derive(Debug)]
struct Raised(String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for Raised {}

impl ChatTemplate {
    /// An empty `bos` or `eos` leaves the variable undefined, as in transformers for a tokenizer
    /// that has none.
    pub fn new(source: &str, bos: &str, eos: &str) -> Outcome<ChatTemplate> {
        let mut env = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        env.set_syntax(syntax.map_err(template_error)?);
        env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        env.set_fuel(Some(FUEL));
        env.set_debug(false);
        env.set_formatter(format_value);
        env.set_unknown_method_callback(pystr::call);
        env.add_filter("tojson", |value: &Value, args: Rest<Value>, kwargs: Kwargs| {
            pyjson::tojson(value, &args, kwargs)
        });
        env.add_filter("string", |value: &Value| python_str(value));
        env.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
        env.add_function("raise_exception", raise_exception);
        env.add_function("strftime_now", strftime_now);
        env.add_template_owned(NAME, replace_generation_tags(source)).map_err(template_error)?;
        Ok(ChatTemplate { env, bos: bos.to_string(), eos: eos.to_string() })
    }

    pub fn render(&self, input: &RenderInput) -> Outcome<String> {
        let mut context = Map::new();
        for (name, token) in [("bos_token", &self.bos), ("eos_token", &self.eos)] {
            if !token.is_empty() {
                context.insert(name.to_string(), Json::from(token.as_str()));
            }
        }
        context.insert("documents".to_string(), Json::Null);
        match parse(input.kwargs, "the template kwargs")? {
            Json::Null => {}
            Json::Object(kwargs) => {
                for name in ["messages", "tools", "add_generation_prompt"] {
                    if kwargs.contains_key(name) {
                        return Err(bad_argument(format!(
                            "the template kwargs may not set \"{name}\": it has its own argument"
                        )));
                    }
                }
                context.extend(kwargs);
            }
            _ => return Err(bad_argument("the template kwargs are not a JSON object")),
        }
        let tools = parse(input.tools, "the tools")?;
        if !tools.is_array() && !tools.is_null() {
            return Err(bad_argument("the tools are not a JSON array"));
        }
        context.insert("tools".to_string(), tools);
        context.insert("messages".to_string(), normalize_messages(input.messages)?);
        context.insert("add_generation_prompt".to_string(), input.add_generation_prompt.into());
        let template = self.env.get_template(NAME).map_err(template_error)?;
        template.render(Value::from(Serde(&context))).map_err(template_error)
    }
}

fn parse(text: &str, what: &str) -> Outcome<Json> {
    if text.is_empty() {
        return Ok(Json::Null);
    }
    serde_json::from_str(text).map_err(|e| bad_argument(format!("{what} are not valid JSON: {e}")))
}

/// As transformers does before rendering: keys with a null value are dropped from each message,
/// and reasoning is given under all the names that templates read it by.
fn normalize_messages(text: &str) -> Outcome<Json> {
    let Json::Array(mut messages) = parse(text, "the messages")? else {
        return Err(bad_argument("the messages are not a JSON array"));
    };
    for (index, message) in messages.iter_mut().enumerate() {
        let Json::Object(fields) = message else {
            return Err(bad_argument(format!("message {index} is not a JSON object")));
        };
        fields.retain(|_, value| !value.is_null());
        let reasoning = ["reasoning_content", "thinking", "reasoning"]
            .iter()
            .find_map(|name| fields.get(*name).cloned());
        if let Some(reasoning) = reasoning {
            fields.entry("thinking").or_insert_with(|| reasoning.clone());
            fields.insert("reasoning_content".to_string(), reasoning);
        }
    }
    Ok(Json::Array(messages))
}

/// transformers' `{% generation %}` block marks assistant text for training; to a renderer it is
/// a scope, which `with` is too. The delimiters stay, and with them the handling of white space.
fn replace_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at + 2);
        out.push_str(before);
        let lead = tag.len() - tag.trim_start_matches(['-', '+']).trim_start().len();
        let (lead, body) = tag.split_at(lead);
        out.push_str(lead);
        rest = body;
        for (name, scope) in [("generation", "with"), ("endgeneration", "endwith")] {
            let Some(after) = body.strip_prefix(name) else { continue };
            if after.trim_start().trim_start_matches(['-', '+']).starts_with("%}") {
                out.push_str(scope);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, "raise_exception was called")
        .with_source(Raised(message)))
}

/// datetime.now().strftime(format), which Python too leaves to the C library.
fn strftime_now(format: String) -> Result<Value, Error> {
    let invalid = |text| Error::new(ErrorKind::InvalidOperation, text);
    // A space in front tells an empty result from a failure, which both give 0.
    let format = std::ffi::CString::new(format!(" {format}"))
        .map_err(|_| invalid("strftime_now: the format has a NUL"))?;
    let mut buffer = [0u8; 1024];
    // SAFETY: tm is plain data; both functions get valid pointers and the buffer's true size.
    let len = unsafe {
        let mut now: libc::tm = std::mem::zeroed();
        let seconds = libc::time(std::ptr::null_mut());
        if libc::localtime_r(&seconds, &mut now).is_null() {
            return Err(invalid("strftime_now: the local time is not known"));
        }
        libc::strftime(buffer.as_mut_ptr().cast(), buffer.len(), format.as_ptr(), &now)
    };
    if len == 0 {
        return Err(invalid("strftime_now: the result is longer than 1023 bytes"));
    }
    Ok(Value::from(String::from_utf8_lossy(&buffer[1..len]).into_owned()))
}

/// str() of Python, of which minijinja lacks the spelling of large and tiny floats.
fn python_str(value: &Value) -> Result<Value, Error> {
    if value.is_number() && !value.is_integer() {
        return Ok(Value::from(pyjson::float_repr(f64::try_from(value.clone())?)));
    }
    Ok(Value::from(value.to_string()))
}

fn format_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    if value.is_number() && !value.is_integer() {
        return minijinja::escape_formatter(out, state, &python_str(value)?);
    }
    minijinja::escape_formatter(out, state, value)
}

fn template_error(e: Error) -> Failure {
    let mut text = e.to_string();
    let mut source = e.source();
    while let Some(inner) = source {
        if let Some(Raised(message)) = inner.downcast_ref::<Raised>() {
            return Failure { status: STATUS_TEMPLATE_RAISE, text: message.clone() };
        }
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    error(format!("chat template: {text}"))
}
