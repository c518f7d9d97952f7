//! Packet delivery (section 3.5).
