//! A reader of OTLP messages in protobuf, independent of the library that writes them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A value of a field in protobuf.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// A message: its fields in order.
struct Message<'a>(Vec<(u64, Wire<'a>)>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a varint");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint is too long");
}

fn fixed<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (part, rest) = bytes.split_at(length);
    *bytes = rest;
    part
}

impl<'a> Message<'a> {
    fn read(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = match key & 7 {
                0 => Wire::Number(varint(&mut bytes)),
                1 => Wire::Number(u64::from_le_bytes(fixed(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    Wire::Bytes(fixed(&mut bytes, length))
                }
                5 => Wire::Number(
                    u32::from_le_bytes(fixed(&mut bytes, 4).try_into().unwrap()).into(),
                ),
                kind => panic!("wire type {kind}"),
            };
            fields.push((key >> 3, value));
        }
        Self(fields)
    }

    fn all(&self, number: u64) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter_map(move |(key, value)| match value {
            Wire::Bytes(bytes) if *key == number => Some(*bytes),
            _ => None,
        })
    }

    fn messages(&self, number: u64) -> impl Iterator<Item = Message<'a>> {
        self.all(number).map(Message::read)
    }

    fn text(&self, number: u64) -> String {
        let bytes = self.all(number).next().unwrap_or_default();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn number(&self, number: u64) -> Option<u64> {
        self.0.iter().find_map(|(key, value)| match value {
            Wire::Number(found) if *key == number => Some(*found),
            _ => None,
        })
    }

    /// `KeyValue`s with this number.
    fn attributes(&self, number: u64) -> BTreeMap<String, Value> {
        let pairs = self.messages(number).map(|pair| {
            let value = pair
                .messages(2)
                .next()
                .map_or(Value::Null, |any| any.any_value());
            (pair.text(1), value)
        });
        pairs.collect()
    }

    fn any_value(&self) -> Value {
        match self.0.first() {
            Some((1, Wire::Bytes(_))) => json!(self.text(1)),
            Some((2, Wire::Number(value))) => json!(*value != 0),
            Some((3, Wire::Number(value))) => json!(value.cast_signed()),
            Some((4, Wire::Number(value))) => json!(f64::from_bits(*value)),
            Some((5, Wire::Bytes(list))) => {
                let list = Message::read(list);
                list.messages(1).map(|item| item.any_value()).collect()
            }
            _ => Value::Null,
        }
    }
}

/// An exported span.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace: Vec<u8>,
    pub(super) id: Vec<u8>,
    pub(super) parent: Vec<u8>,
    pub(super) name: String,
    pub(super) kind: u64,
    pub(super) nanos: u64,
    pub(super) attributes: BTreeMap<String, Value>,
    pub(super) events: usize,
    pub(super) has_failed: bool,
    pub(super) resource: BTreeMap<String, Value>,
}

/// The spans of an `ExportTraceServiceRequest`.
pub(super) fn spans(body: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in Message::read(body).messages(1) {
        let resource = of_resource.messages(1).next().unwrap().attributes(1);
        for span in of_resource
            .messages(2)
            .flat_map(|scope| scope.messages(2).collect::<Vec<_>>())
        {
            let id = |number| span.all(number).next().unwrap_or_default().to_vec();
            let status = span.messages(15).next();
            spans.push(Span {
                trace: id(1),
                id: id(2),
                parent: id(4),
                name: span.text(5),
                kind: span.number(6).unwrap_or_default(),
                nanos: span.number(8).unwrap() - span.number(7).unwrap(),
                attributes: span.attributes(9),
                events: span.all(11).count(),
                has_failed: status.and_then(|status| status.number(3)) == Some(2),
                resource: resource.clone(),
            });
        }
    }
    spans
}

/// A point of an exported metric.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) metric: String,
    pub(super) unit: String,
    pub(super) attributes: BTreeMap<String, Value>,
    /// The sum of a histogram, or the value of a counter.
    pub(super) sum: f64,
    /// The number of values of a histogram.
    pub(super) count: u64,
}

/// The points of an `ExportMetricsServiceRequest`.
pub(super) fn points(body: &[u8]) -> Vec<Point> {
    let mut points = Vec::new();
    for of_resource in Message::read(body).messages(1) {
        for metric in of_resource
            .messages(2)
            .flat_map(|scope| scope.messages(2).collect::<Vec<_>>())
        {
            let (name, unit) = (metric.text(1), metric.text(3));
            let mut add = |attributes, sum, count| {
                points.push(Point {
                    metric: name.clone(),
                    unit: unit.clone(),
                    attributes,
                    sum,
                    count,
                });
            };
            for sum in metric.messages(7) {
                for point in sum.messages(1) {
                    let value = point.number(6).unwrap_or_default() as f64;
                    add(point.attributes(7), value, 0);
                }
            }
            for histogram in metric.messages(9) {
                for point in histogram.messages(1) {
                    let sum = f64::from_bits(point.number(5).unwrap_or_default());
                    add(point.attributes(9), sum, point.number(4).unwrap());
                }
            }
        }
    }
    points
}
