//! A serializer for the JSON of packets. It is faster than a general serializer, because keys and values of packets
//! need no escaping. The search for characters to escape would take most of the time.

use serde::ser::{Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeTuple, Serializer};
use serde_json::Error;
use std::fmt::Display;
use std::io::Write;

/// Appends JSON to a buffer.
pub(super) struct Writer<'o>(pub(super) &'o mut Vec<u8>);

impl Writer<'_> {
    /// Starts a value or a key.
    fn start(&mut self, text: &[u8]) {
        // No value ends with one of these characters.
        if !matches!(self.0.last(), None | Some(b'{' | b'[' | b':' | b'\n')) {
            self.0.push(b',');
        }
        self.0.extend_from_slice(text);
    }
}

/// An open object or list.
pub(super) struct Open<'w, 'o> {
    writer: &'w mut Writer<'o>,
    end: u8,
}

impl Open<'_, '_> {
    fn close(self) -> Result<(), Error> {
        self.writer.0.push(self.end);
        Ok(())
    }
}

impl SerializeMap for Open<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        key.serialize(&mut *self.writer)?;
        self.writer.0.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl SerializeSeq for Open<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

impl SerializeTuple for Open<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

macro_rules! numbers {
    ($($name:ident: $ty:ty),*) => {$(
        fn $name(self, value: $ty) -> Result<(), Error> {
            self.start(itoa::Buffer::new().format(value).as_bytes());
            Ok(())
        }
    )*};
}

/// Kinds of values that packets do not have.
macro_rules! absent {
    ($($name:ident($($ty:ty),*) -> $Ok:ty;)*) => {$(
        fn $name(self, $(_: $ty),*) -> Result<$Ok, Error> {
            Err(Error::custom("a packet contains no value of this kind"))
        }
    )*};
}

impl<'w, 'o> Serializer for &'w mut Writer<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Open<'w, 'o>;
    type SerializeTuple = Open<'w, 'o>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Open<'w, 'o>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    numbers! {
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64
    }

    absent! {
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.start(if value { b"true" } else { b"false" });
        Ok(())
    }

    /// Writes text without characters to escape. [`collect_str`](Self::collect_str) accepts any text.
    fn serialize_str(self, text: &str) -> Result<(), Error> {
        debug_assert!(!text.bytes().any(is_escaped), "{text}");
        self.start(b"\"");
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'"');
        Ok(())
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<(), Error> {
        self.start(b"\"");
        let start = self.0.len();
        write!(self.0, "{value}").map_err(Error::io)?;
        if self.0.get(start..).is_some_and(|text| text.iter().copied().any(is_escaped)) {
            self.0.truncate(start - 1);
            return serde_json::to_writer(&mut *self.0, &value.to_string());
        }
        self.0.push(b'"');
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.start(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Error> {
        Err(Error::custom("a packet contains no value of this kind"))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'w, 'o>, Error> {
        self.start(b"[");
        Ok(Open { writer: self, end: b']' })
    }

    fn serialize_tuple(self, _: usize) -> Result<Open<'w, 'o>, Error> {
        self.serialize_seq(None)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Open<'w, 'o>, Error> {
        self.start(b"{");
        Ok(Open { writer: self, end: b'}' })
    }
}

/// Returns true for a byte that JSON must escape in text.
fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}
