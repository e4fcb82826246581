package otlp

import "encoding/binary"

// An answer is a collector's response to an accepted request: how many spans it rejected, and why.
// If it rejected none, why is a warning.
type answer struct {
	rejected uint64
	why      string
}

// readAnswer reads an ExportTraceServiceResponse, by the numbers in
// opentelemetry/proto/collector/trace/v1. A body that is not one gives the zero answer: the
// collector accepted the request and reported nothing else.
func readAnswer(data []byte) (a answer) {
	whole := fields(data, func(number, _ uint64, partial []byte) bool {
		return number != 1 || partial == nil || fields(partial, func(number, n uint64, text []byte) bool {
			switch {
			case number == 1 && text == nil:
				a.rejected = uint64(max(0, int64(n)))
			case number == 2 && text != nil:
				a.why = string(text)
			}
			return true
		})
	})
	if !whole {
		return answer{}
	}
	return a
}

// fields calls use for each field of a message: with its number, and its varint, or with text if
// that is not nil. It returns true if data is a message and use returned true for every field. It
// skips fields of fixed size, which no message here has.
func fields(data []byte, use func(number, n uint64, text []byte) bool) bool {
	for len(data) > 0 {
		tag, size := binary.Uvarint(data)
		if size <= 0 || tag>>3 == 0 {
			return false
		}
		data = data[size:]
		switch tag & 7 {
		case fixed64:
			size = 8
		case fixed32:
			size = 4
		case varint, lengthy:
			n, size := binary.Uvarint(data)
			if size <= 0 {
				return false
			}
			data = data[size:]
			var text []byte
			if tag&7 == lengthy {
				if n > uint64(len(data)) {
					return false
				}
				text, data = data[:n:n], data[n:]
			}
			if !use(tag>>3, n, text) {
				return false
			}
			continue
		default:
			return false
		}
		if len(data) < size {
			return false
		}
		data = data[size:]
	}
	return true
}
