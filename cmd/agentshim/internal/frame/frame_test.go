package frame

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &Message{
			Kind:  Kind(rapid.Byte().Draw(t, "kind")),
			Words: rapid.MapOfN(rapid.String(), rapid.String(), 0, maxWords).Draw(t, "words"),
			Body:  rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
		}
		var wire bytes.Buffer
		if err := Write(&wire, want); err != nil {
			t.Fatal(err)
		}
		whole := bytes.Clone(wire.Bytes())
		got, err := Read(iotest.OneByteReader(&wire), MaxRequest)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
		torn := rapid.IntRange(0, len(whole)-1).Draw(t, "torn")
		if _, err := Read(bytes.NewReader(whole[:torn]), MaxRequest); err == nil {
			t.Errorf("%d of %d bytes are taken for a message", torn, len(whole))
		}
	})
}

func TestWhatIsNoMessageIsSaid(t *testing.T) {
	for name, c := range map[string]struct{ wire, want string }{
		"too long":       {"\xff\xff\xff\xff", "larger than"},
		"empty":          {"\x00\x00\x00\x00", "in the middle of"},
		"no words":       {"\x00\x00\x00\x01h", "in the middle of"},
		"too many words": {"\x00\x00\x00\x02h\x7f", "127 words"},
		"a torn word":    {"\x00\x00\x00\x04h\x01\x09a", "in the middle of"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(c.wire), MaxRequest); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := Read(strings.NewReader(""), MaxRequest); !errors.Is(err, io.EOF) {
		t.Errorf("the end is %v", err)
	}
}

// FuzzRead checks that a message costs the reader no more memory than it has bytes.
func FuzzRead(f *testing.F) {
	f.Add(Append(nil, &Message{Kind: Hook, Words: map[string]string{"runtime": "claude"}, Body: []byte("{}")}))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x00\x00\x00\x02h\xff"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		m, err := Read(bytes.NewReader(wire), MaxRequest)
		if (m == nil) == (err == nil) {
			t.Fatalf("%v, %v", m, err)
		}
		if m == nil {
			return
		}
		again, err := Read(bytes.NewReader(Append(nil, m)), MaxRequest)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, again, cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	})
}
