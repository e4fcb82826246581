package otlp

import "encoding/binary"

// An answer is what a collector says of a request that it took: how many of its spans it
// rejected, and why. With none rejected the reason is a warning.
type answer struct {
	rejected uint64
	why      string
}

// readAnswer reads an ExportTraceServiceResponse, by the numbers in
// opentelemetry/proto/collector/trace/v1. What is none says nothing: the request was
// taken, and that is all that is known.
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

// fields hands on the fields of a message: their numbers, and the value of each, which is a
// varint, or if text is not nil that. It reports whether data is a message, and use
// said so of what is in it. Fields of fixed size are skipped; nothing here has one.
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
