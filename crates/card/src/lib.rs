//! Measures PC/SC and the smart cards behind it.
