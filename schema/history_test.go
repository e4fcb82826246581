package schema_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// Any reference is read within limits, and encodes to the same text.
func FuzzHistoryParts(f *testing.F) {
	digest := "sha256-" + strings.Repeat("c4", 32)
	for _, ref := range []string{"", "objects:", "objects:" + digest + "/65611", "objects:" + digest + "/1," + digest + "/2", "lost:full", "/home/dev/t.jsonl",
		"objects:" + digest + "/1048577", "objects:" + digest + "/+1", "objects:" + strings.ToUpper(digest) + "/1", "objects:,"} {
		f.Add(ref)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		parts, err := schema.HistoryParts(ref)
		if err != nil {
			if len(parts) > 0 {
				t.Errorf("%q: %d parts and %v", ref, len(parts), err)
			}
			return
		}
		sum := int64(0)
		for _, p := range parts {
			if sum += p.Size; p.Size < 1 || p.Size > schema.MaxPart {
				t.Errorf("%q: a part of %d bytes", ref, p.Size)
			}
		}
		if len(parts) > schema.MaxHistoryParts || sum > schema.MaxHistory {
			t.Errorf("%q: %d parts of %d bytes", ref, len(parts), sum)
		}
		if named := strings.HasPrefix(ref, "objects:"); named != (len(parts) > 0) || named && schema.HistoryFile(ref) {
			t.Errorf("%q: %d parts", ref, len(parts))
		}
		again, err := schema.HistoryParts(schema.HistoryRef(parts))
		if diff := cmp.Diff(parts, again); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", ref, err, diff)
		}
	})
}

func TestAConversationHasOnlyMessages(t *testing.T) {
	for lines, ok := range map[string]bool{
		"":                    true,
		"{\"n\":1}\n":         true,
		"{\"n\":1}\n{}\n":     true,
		"{\"n\":1}":           false,
		"{\"n\":1}\n\n":       false,
		"[]\n":                false,
		"{\"n\":1} {}\n":      false,
		"{\"n\":\n1}\n":       false,
		"{\"n\":1,\"n\":2}\n": false,
		"{\"n\":" + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + "}\n": false,
	} {
		if err := schema.CheckHistory([]byte(lines)); (err == nil) != ok {
			t.Errorf("%.40q: %v", lines, err)
		}
	}
	if err := schema.CheckHistory(bytes.Repeat([]byte("{}\n"), 1000)); err != nil {
		t.Error(err)
	}
}
