package python

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
)

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{})
	f.Add(frame(7, []byte(`{"result":`), []byte(`{}}`)))
	f.Add(append(frame(1), frame(2, []byte("x"))...))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 9, 0, 0, 0, 1, 'x'})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, startBackoff := bufio.NewReader(bytes.NewReader(data)), data
		for {
			number, body, err := readFrame(r)
			if err != nil {
				if errors.Is(err, io.EOF) && len(startBackoff) > 0 {
					t.Errorf("%d bytes before the end were no frame and no error", len(startBackoff))
				}
				return
			}
			again := frame(number, body)
			if !bytes.HasPrefix(startBackoff, again) {
				t.Fatalf("read %d bytes that are not those written", len(again))
			}
			startBackoff = startBackoff[len(again):]
		}
	})
}
