//! The C edge: status codes, strings, output buffers and the guard that every exported function
//! runs inside. No panic and no half-written buffer leaves this module.

use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

pub const STATUS_OK: i32 = 0;
pub const STATUS_ERROR: i32 = 1;
pub const STATUS_PANIC: i32 = 2;
pub const STATUS_BAD_ARGUMENT: i32 = 3;
pub const STATUS_TEMPLATE_RAISE: i32 = 4;

/// Bytes of the caller, valid during the call. `data` may be null if `len` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SluiceStr {
    pub data: *const u8,
    pub len: usize,
}

/// A growable output buffer: starts as all zeros, is refilled by each call, freed by the caller.
#[repr(C)]
pub struct SluiceBytes {
    pub data: *mut u8,
    pub len: usize,
    pub cap: usize,
}

/// As SluiceBytes, for token ids.
#[repr(C)]
pub struct SluiceIds {
    pub data: *mut u32,
    pub len: usize,
    pub cap: usize,
}

/// Why a call failed; becomes the status and the text of the error buffer.
#[derive(Debug)]
pub struct Failure {
    pub status: i32,
    pub text: String,
}

pub type Outcome<T = ()> = Result<T, Failure>;

pub fn error(text: impl std::fmt::Display) -> Failure {
    Failure { status: STATUS_ERROR, text: text.to_string() }
}

pub fn bad_argument(text: impl std::fmt::Display) -> Failure {
    Failure { status: STATUS_BAD_ARGUMENT, text: text.to_string() }
}

/// What the two output buffers share.
pub trait Buffer {
    type Item;
    /// Takes the storage out, leaving the C struct empty, so that a panic cannot leave it dangling.
    fn take(&mut self) -> Vec<Self::Item>;
    fn put(&mut self, items: Vec<Self::Item>);
}

macro_rules! impl_buffer {
    ($buffer:ty, $item:ty) => {
        impl Buffer for $buffer {
            type Item = $item;
            fn take(&mut self) -> Vec<$item> {
                let (data, cap) = (self.data, self.cap);
                self.data = std::ptr::null_mut();
                self.len = 0;
                self.cap = 0;
                if data.is_null() {
                    return Vec::new();
                }
                // SAFETY: a non-null `data` was put here by `put`, with this very capacity.
                unsafe { Vec::from_raw_parts(data, 0, cap) }
            }
            fn put(&mut self, items: Vec<$item>) {
                let mut items = std::mem::ManuallyDrop::new(items);
                self.data = items.as_mut_ptr();
                self.len = items.len();
                self.cap = items.capacity();
                if self.cap == 0 {
                    self.data = std::ptr::null_mut();
                }
            }
        }
    };
}
impl_buffer!(SluiceBytes, u8);
impl_buffer!(SluiceIds, u32);

/// Refills the caller's buffer. After a failure it is empty but keeps its storage.
///
/// # Safety
/// `out` is null or points to a buffer that is zeroed or was filled by this library.
pub unsafe fn fill<B: Buffer>(
    out: *mut B,
    write: impl FnOnce(&mut Vec<B::Item>) -> Outcome,
) -> Outcome {
    let out = out.as_mut().ok_or_else(|| bad_argument("the output buffer is null"))?;
    let mut items = out.take();
    let outcome = write(&mut items);
    if outcome.is_err() {
        items.clear();
    }
    out.put(items);
    outcome
}

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps a panic's text and place for the error buffer instead of printing it: this is the only
/// Rust of the process and the terminal belongs to the program.
fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let text = info.to_string();
            LAST_PANIC.with(|last| *last.borrow_mut() = text);
        }));
    });
}

/// Runs the body of an exported function: catches panics, writes the error text, gives the status.
///
/// # Safety
/// `err` is null or points to a valid output buffer.
pub unsafe fn guard(err: *mut SluiceBytes, body: impl FnOnce() -> Outcome) -> i32 {
    install_panic_hook();
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return STATUS_OK,
        Ok(Err(failure)) => failure,
        Err(_) => {
            let text = LAST_PANIC.with(|last| std::mem::take(&mut *last.borrow_mut()));
            Failure { status: STATUS_PANIC, text: format!("internal panic: {text}") }
        }
    };
    if let Some(err) = err.as_mut() {
        let mut bytes = err.take();
        bytes.clear();
        bytes.extend_from_slice(failure.text.as_bytes());
        err.put(bytes);
    }
    failure.status
}

/// # Safety
/// `text` is valid for the call.
pub unsafe fn bytes<'a>(text: SluiceStr) -> &'a [u8] {
    if text.data.is_null() || text.len == 0 {
        return &[];
    }
    std::slice::from_raw_parts(text.data, text.len)
}

/// The caller's text as UTF-8; `what` names it in the error.
///
/// # Safety
/// As `bytes`.
pub unsafe fn text<'a>(text: SluiceStr, what: &str) -> Outcome<&'a str> {
    std::str::from_utf8(bytes(text))
        .map_err(|e| bad_argument(format!("{what} is not valid UTF-8 at byte {}", e.valid_up_to())))
}

/// # Safety
/// `ids` points to `len` ids or is null with `len` 0.
pub unsafe fn ids<'a>(ids: *const u32, len: usize) -> Outcome<&'a [u32]> {
    if len == 0 {
        return Ok(&[]);
    }
    if ids.is_null() {
        return Err(bad_argument("the ids pointer is null but their number is not 0"));
    }
    Ok(std::slice::from_raw_parts(ids, len))
}

/// # Safety
/// `handle` is null or a live handle of type T.
pub unsafe fn shared<'a, T>(handle: *const T, what: &str) -> Outcome<&'a T> {
    handle.as_ref().ok_or_else(|| bad_argument(format!("the {what} handle is null")))
}

/// # Safety
/// `handle` is null or a live handle of type T that no other thread uses.
pub unsafe fn exclusive<'a, T>(handle: *mut T, what: &str) -> Outcome<&'a mut T> {
    handle.as_mut().ok_or_else(|| bad_argument(format!("the {what} handle is null")))
}

/// # Safety
/// `out` is null or writable.
pub unsafe fn store<T>(out: *mut T, value: T) -> Outcome {
    if out.is_null() {
        return Err(bad_argument("an output pointer is null"));
    }
    out.write(value);
    Ok(())
}

/// Hands a new object to the caller.
///
/// # Safety
/// `out` is null or writable.
pub unsafe fn give<T>(out: *mut *mut T, value: T) -> Outcome {
    if out.is_null() {
        return Err(bad_argument("the output handle pointer is null"));
    }
    out.write(Box::into_raw(Box::new(value)));
    Ok(())
}

/// Frees a handle; null is fine. A destructor that panics is swallowed.
///
/// # Safety
/// `handle` is null or a live handle that is not used again.
pub unsafe fn release<T>(handle: *mut T) {
    if !handle.is_null() {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(handle))));
    }
}

/// # Safety
/// `buffer` is null, zeroed or filled by this library.
#[no_mangle]
pub unsafe extern "C" fn sluice_bytes_free(buffer: *mut SluiceBytes) {
    if let Some(buffer) = buffer.as_mut() {
        drop(buffer.take());
    }
}

/// # Safety
/// `buffer` is null, zeroed or filled by this library.
#[no_mangle]
pub unsafe extern "C" fn sluice_ids_free(buffer: *mut SluiceIds) {
    if let Some(buffer) = buffer.as_mut() {
        drop(buffer.take());
    }
}

/// Panics on purpose, so that a test can see that no panic crosses.
///
/// # Safety
/// `err` is null or a valid output buffer.
#[no_mangle]
pub unsafe extern "C" fn sluice_test_panic(err: *mut SluiceBytes) -> i32 {
    guard(err, || panic!("asked for by a test"))
}
