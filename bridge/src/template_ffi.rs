//! sluice_template_*: see include/sluice_bridge.h.

use crate::ffi::*;
use crate::template::{ChatTemplate, RenderInput};

pub struct SluiceTemplate(ChatTemplate);

#[repr(C)]
pub struct SluiceRenderInput {
    pub messages: SluiceStr,
    pub tools: SluiceStr,
    pub kwargs: SluiceStr,
    pub add_generation_prompt: bool,
}

#[no_mangle]
pub unsafe extern "C" fn sluice_template_new(
    source: SluiceStr,
    bos: SluiceStr,
    eos: SluiceStr,
    out: *mut *mut SluiceTemplate,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let template = ChatTemplate::new(
            text(source, "the chat template")?,
            text(bos, "the BOS token")?,
            text(eos, "the EOS token")?,
        )?;
        give(out, SluiceTemplate(template))
    })
}

#[no_mangle]
pub unsafe extern "C" fn sluice_template_free(tmpl: *mut SluiceTemplate) {
    release(tmpl);
}

#[no_mangle]
pub unsafe extern "C" fn sluice_template_render(
    tmpl: *const SluiceTemplate,
    input: *const SluiceRenderInput,
    out: *mut SluiceBytes,
    err: *mut SluiceBytes,
) -> i32 {
    guard(err, || {
        let template = shared(tmpl, "template")?;
        let input = shared(input, "render input")?;
        let rendered = template.0.render(&RenderInput {
            messages: text(input.messages, "the messages")?,
            tools: text(input.tools, "the tools")?,
            kwargs: text(input.kwargs, "the template kwargs")?,
            add_generation_prompt: input.add_generation_prompt,
        })?;
        fill(out, |bytes| {
            *bytes = rendered.into_bytes();
            Ok(())
        })
    })
}
