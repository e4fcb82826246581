// Package frame is the protocol between a hook and the local daemon over a unix socket:
// small messages, each with its length in front.
//
// A message has a kind, named words and a body. Readers ignore unknown names, so that hooks
// and daemons of neighbouring releases understand each other. The format is not JSON: the
// hook's process handles one message, and initialising a JSON decoder would take longer than
// the call.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hookfabric/hookfabric/schema"
)

// A Kind is the kind of a message.
type Kind byte

// The kinds. The requests of a hook or another client come first.
const (
	// Hook asks for a verdict on a runtime's payload, and for the runtime's answer.
	Hook    Kind = 'h'
	Ask     Kind = 'a' // asks for a verdict on an event in the fabric's own form
	Status  Kind = 's' // asks for the daemon's status
	Written Kind = 'w' // reports that the agent has the answer

	// Beat reports that the daemon is alive, and that the call is not judged yet.
	Beat      Kind = 'b'
	Answer    Kind = 'r' // the response
	Elsewhere Kind = 'e' // reports that the daemon cannot handle the request; its reason says why
)

// The limits of a message. An answer may carry texts, an event may not.
const (
	MaxRequest = schema.MaxEvent + 256<<10
	MaxAnswer  = 2 * schema.MaxText
	maxWords   = 64
)

const headSize = 4

// A Message is one frame.
type Message struct {
	Kind Kind
	// Words are the parameters of the body, by name.
	Words map[string]string
	Body  []byte
}

// Append adds the frame of m to b.
func Append(b []byte, m *Message) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, byte(m.Kind))
	b = binary.AppendUvarint(b, uint64(len(m.Words)))
	for name, word := range m.Words {
		b = appendText(appendText(b, name), word)
	}
	b = append(b, m.Body...)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-headSize))
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Write writes m in one piece.
func Write(w io.Writer, m *Message) error {
	size := 64 + len(m.Body)
	for name, word := range m.Words {
		size += len(name) + len(word) + 8
	}
	_, err := w.Write(Append(make([]byte, 0, size), m))
	return err
}

// Read reads one message of at most some bytes. At the end of the input it returns io.EOF.
func Read(r io.Reader, most int) (*Message, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(most) {
		return nil, fmt.Errorf("a message of %d bytes is larger than the limit of %d; use a hook of the same release as the daemon", n, most)
	}
	data, err := readAll(r, int(n))
	if err != nil {
		return nil, err
	}
	return Decode(data)
}

// readAll reads n bytes, and allocates memory as they arrive, not for a length that a client claims.
func readAll(r io.Reader, n int) ([]byte, error) {
	const step = 64 << 10
	data := make([]byte, 0, min(n, step))
	for len(data) < n {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		m, err := r.Read(data[len(data):min(cap(data), n)])
		data = data[:len(data)+m]
		if errors.Is(err, io.EOF) && len(data) < n {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil && len(data) < n {
			return nil, err
		}
	}
	return data, nil
}

var errTorn = errors.New("the connection ended in the middle of a message")

// Decode reads a message without the length before it. The body is part of data.
func Decode(data []byte) (*Message, error) {
	if len(data) == 0 {
		return nil, errTorn
	}
	m := &Message{Kind: Kind(data[0])}
	n, data, err := number(data[1:])
	if err != nil {
		return nil, err
	}
	if n > maxWords {
		return nil, fmt.Errorf("a message has %d words; the limit is %d", n, maxWords)
	}
	m.Words = make(map[string]string, n)
	for range n {
		var name, word string
		if name, data, err = text(data); err != nil {
			return nil, err
		}
		if word, data, err = text(data); err != nil {
			return nil, err
		}
		m.Words[name] = word
	}
	m.Body = data
	return m, nil
}

func number(data []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(data)
	if size <= 0 {
		return 0, nil, errTorn
	}
	return n, data[size:], nil
}

func text(data []byte) (s string, rest []byte, err error) {
	n, data, err := number(data)
	if err != nil || n > uint64(len(data)) {
		return "", nil, errTorn
	}
	return string(data[:n]), data[n:], nil
}
