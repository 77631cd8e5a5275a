//! What each shape of operation needs of a worker: one type a shape, found by [`shape_work`].
//!
//! Everything that depends on the shape is in these types: the calls of the timed section
//! ([`TimedCalls`](super::operation::TimedCalls)), and before and after it the keys, inputs and
//! results ([`ShapeWork`]). A new shape is a new type and a line in `shape_work`.

mod objects;
mod shape_work;
mod token;
mod transforms;

pub(super) use self::shape_work::{CallSetup, KeptResult, KeptResults, ShapeWork};
use crate::catalogue::Shape;

/// The work of a shape.
pub(super) fn shape_work(shape: Shape) -> &'static dyn ShapeWork {
    match shape {
        Shape::Sign => &transforms::Sign,
        Shape::Encrypt => &transforms::Encrypt,
        Shape::Decrypt => &transforms::Decrypt,
        Shape::Digest => &transforms::Digest,
        Shape::Wrap => &transforms::Wrap,
        Shape::Derive => &objects::Derive,
        Shape::Unwrap => &objects::Unwrap,
        Shape::GenerateKey => &objects::GenerateKey,
        Shape::GenerateKeyPair => &objects::GenerateKeyPair,
        Shape::Encapsulate => &objects::Encapsulate,
        Shape::Decapsulate => &objects::Decapsulate,
        Shape::Random => &token::Random,
        Shape::FindObjects => &token::FindObjects,
        Shape::OpenSession => &token::OpenSession,
        Shape::Login => &token::Login,
    }
}
