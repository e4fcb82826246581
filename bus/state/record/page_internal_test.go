package record

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// packed is data as pages pack it.
func packed(data []byte) []byte {
	p := newPage()
	p.add(data)
	return p.tear(nil)
}

func TestAPageReturnsItsLines(t *testing.T) {
	p := newPage()
	for round := range 3 { // each begins empty
		var want []byte
		for p.takes(1000, maxBytes) {
			line := []byte(strings.Repeat("x", 999-round) + "\n")
			want = append(want, line...)
			p.add(line)
		}
		if lines := bytes.Count(want, []byte("\n")); lines != maxLines || p.lines != maxLines {
			t.Errorf("%d lines, which should be %d", p.lines, maxLines)
		}
		data := p.tear(nil)
		if len(data) > len(want)/10 {
			t.Errorf("%d bytes are packed as %d", len(want), len(data))
		}
		if got, err := unpacked(schema.SnappyFramed, data); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back of %d, %v", len(got), len(want), err)
		}
	}
}

func TestAPageIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		most int
	}{
		"what packs well":      {strings.Repeat("x", 100<<10), maxBytes},
		"what hardly packs":    {noise(10 << 10), maxBytes},
		"a server of 64 KiB":   {noise(10 << 10), 32 << 10},
		"one line is too much": {noise(40 << 10), 32 << 10},
	} {
		p := newPage()
		for p.takes(len(c.line), c.most) {
			p.add([]byte(c.line))
		}
		lines, plain := p.lines, p.plain
		if data := p.tear(nil); lines > 1 && len(data) > c.most || plain > maxPlain {
			t.Errorf("%s: %d lines of %d bytes are packed as %d", name, lines, plain, len(data))
		}
	}
}

func TestAMessageThatCannotBeUnpackedIsAnError(t *testing.T) {
	bomb := packed(bytes.Repeat([]byte("x"), maxPlain+maxRecord+1))
	for name, c := range map[string]struct{ encoding, data, want string }{
		"as it was before":   {"", "{}\n", ""},
		"of a later broker":  {"zstd", "{}\n", `packed as "zstd", which this version cannot read`},
		"junk":               {schema.SnappyFramed, "{}\n", "unpacking it"},
		"cut off":            {schema.SnappyFramed, string(packed([]byte("{}\n"))[:12]), "unpacking it"},
		"more than there is": {schema.SnappyFramed, string(bomb), "more than the"},
	} {
		got, err := unpacked(c.encoding, []byte(c.data))
		if c.want == "" && (err != nil || string(got) != c.data) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
}

func FuzzUnpacked(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Add(packed([]byte("{}\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := unpacked(schema.SnappyFramed, data); err == nil && len(got) > maxPlain+maxRecord {
			t.Errorf("%d bytes", len(got))
		}
		if got, err := unpacked(schema.SnappyFramed, packed(data)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%q came back as %q, %v", data, got, err)
		}
	})
}

// noise is a text of so many bytes that no packing makes small.
func noise(n int) string {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}
