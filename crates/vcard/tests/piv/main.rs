//! The PIV applet, asked as a terminal asks it; what it signs and holds is judged by OpenSSL.

mod icam;
mod keys;
mod objects;
mod personality;
mod pin;
mod robustness;
mod support;
