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
	// maxAnswer is the largest answer of a host in bytes: a result, or the message and
	// the traceback of an exception.
	maxAnswer = schema.MaxResult + 256<<10
)

// frame returns a request in the form that a host reads.
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

// readFrame reads one frame of a host. The end of the pipe is io.EOF between frames,
// and io.ErrUnexpectedEOF within one.
func readFrame(r *bufio.Reader) (number uint32, body []byte, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxAnswer {
		return 0, nil, fmt.Errorf("it wrote data into the answer pipe that is not an answer, or an answer of more than %d bytes", maxAnswer)
	}
	body = make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return binary.BigEndian.Uint32(head[4:]), body, nil
}
