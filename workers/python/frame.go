package python

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// headSize is the length of the JSON and the number of the request, four
	// bytes each.
	headSize = 8
	// maxAnswer bounds what a host sends at once: a result, or the words and the
	// traceback of an exception.
	maxAnswer = schema.MaxResult + 256<<10
)

// frame is a request as a host reads it.
func frame(number uint32, body ...[]byte) []byte {
	size := 0
	for _, b := range body {
		size += len(b)
	}
	out := make([]byte, headSize, headSize+size)
	binary.BigEndian.PutUint32(out, uint32(size))
	binary.BigEndian.PutUint32(out[4:], number)
	for _, b := range body {
		out = append(out, b...)
	}
	return out
}

// readFrame reads what a host has written. What is no frame is an error; so is
// the end, as io.EOF only where a frame may end.
func readFrame(r *bufio.Reader) (number uint32, body []byte, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxAnswer {
		return 0, nil, fmt.Errorf("it wrote something into the pipe of its answers that is none, or one of more than %d bytes", maxAnswer)
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return binary.BigEndian.Uint32(head[4:]), body, nil
}
