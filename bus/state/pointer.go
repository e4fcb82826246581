package state

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A pointer is the value of the key `current`.
type pointer struct {
	// Version is the active version.
	Version uint64 `json:"version"`
	// Kept are the versions that are kept, newest first. Others may be there
	// for a moment, or because their publisher died: they were never active.
	Kept []uint64 `json:"kept"`
}

func (p pointer) next(version uint64) pointer {
	kept := append([]uint64{version}, p.Kept...)
	return pointer{Version: version, Kept: kept[:min(len(kept), KeptConfigs)]}
}

// lastMsg is the leader's answer about the last message of a subject.
type lastMsg struct {
	Message *struct {
		Seq  uint64 `json:"seq"`
		Data []byte `json:"data"`
	} `json:"message"`
	Error *jetstream.APIError `json:"error"`
}

// pointer reads the key `current` and its revision from the leader: an
// ordinary get may be answered by a replica that does not know yet.
func (c *Configs) pointer(ctx context.Context) (pointer, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	subj := apiPrefix(c.js.Options()) + "STREAM.MSG.GET.KV_" + ConfigBucket
	ask := &nats.Msg{Subject: subj, Data: []byte(`{"last_by_subj":"$KV.` + ConfigBucket + "." + currentKey + `"}`)}
	m, err := c.js.Conn().RequestMsgWithContext(ctx, ask)
	if err != nil {
		return pointer{}, 0, fmt.Errorf("reading which config version is active: %w", err)
	}
	var last lastMsg
	if err := schema.Unmarshal(m.Data, &last); err != nil {
		return pointer{}, 0, fmt.Errorf("reading which config version is active: %w", err)
	}
	return last.pointer()
}

func (l *lastMsg) pointer() (pointer, uint64, error) {
	switch {
	case l.Error != nil && l.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return pointer{}, 0, nil
	case l.Error != nil:
		return pointer{}, 0, fmt.Errorf("reading which config version is active: %w", l.Error)
	case l.Message == nil || len(l.Message.Data) == 0:
		return pointer{}, 0, fmt.Errorf("the key %s of the bucket %s was deleted; delete the whole bucket to start a new fabric", currentKey, ConfigBucket)
	}
	p, err := parsePointer(l.Message.Data)
	return p, l.Message.Seq, err
}

func parsePointer(data []byte) (pointer, error) {
	var p pointer
	if err := schema.Unmarshal(data, &p); err != nil || p.Version == 0 {
		return pointer{}, fmt.Errorf("the key %s of the bucket %s holds %.100q, which names no config version", currentKey, ConfigBucket, data)
	}
	return p, nil
}

// apiPrefix is where JetStream takes requests, which a domain or an import may
// have moved.
func apiPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}
