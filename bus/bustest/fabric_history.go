package bustest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

func (f *Fabric) storePart(m *nats.Msg) {
	var r schema.KeepRequest
	if !read(m, &r) {
		return
	}
	f.Keeps = append(f.Keeps, r)
	if len(r.Data) > 0 {
		sum := sha256.Sum256(r.Data)
		r.Digest, r.Size = "sha256-"+hex.EncodeToString(sum[:]), int64(len(r.Data))
		f.Objects[r.Digest] = r.Data
	}
	_, known := f.Objects[r.Digest]
	Respond(m, &schema.KeepAnswer{Digest: r.Digest, Size: r.Size, Known: known})
}

// Conversation returns the conversation of an event as a hook would read it. The caller holds
// the lock.
func (f *Fabric) Conversation(e *schema.Event) (jsontext.Value, error) {
	refs, err := schema.HistoryParts(e.HistoryRef)
	if err != nil {
		return nil, err
	}
	var lines []byte
	for _, o := range refs {
		part := f.Objects[o.Digest]
		if int64(len(part)) != o.Size {
			return nil, fmt.Errorf("%s has %d bytes, and the event says %d", o.Digest, len(part), o.Size)
		}
		lines = append(lines, part...)
	}
	if err := schema.CheckHistory(lines); err != nil {
		return nil, err
	}
	lines = bytes.ReplaceAll(lines, []byte("\n"), []byte(","))
	end := bytes.TrimPrefix(e.History, []byte("["))
	if len(end) < 2 {
		lines = bytes.TrimSuffix(lines, []byte(","))
	}
	return append(append(jsontext.Value("["), lines...), end...), nil
}
