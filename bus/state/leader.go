package state

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	configStream = "KV_" + ConfigBucket
	keySubject   = "$KV." + ConfigBucket + "."
)

// lastMsg is the leader's answer about the last message of a subject.
type lastMsg struct {
	Message *struct {
		Seq  uint64 `json:"seq"`
		Data []byte `json:"data"`
	} `json:"message"`
	Error *jetstream.APIError `json:"error"`
}

// value is what the key holds and its revision. A key that was never written
// has revision 0; one that was deleted, or has lapsed, holds nothing: its
// marker has a header alone.
func (l *lastMsg) value() (data []byte, revision uint64, err error) {
	switch {
	case l.Error != nil && l.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, 0, nil
	case l.Error != nil:
		return nil, 0, l.Error
	case l.Message == nil:
		return nil, 0, fmt.Errorf("the answer names no message")
	}
	return l.Message.Data, l.Message.Seq, nil
}

// last reads a key from the stream's leader: an ordinary get may be answered
// by a replica that does not know yet.
func (c *Configs) last(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	var l lastMsg
	if err := c.ask(ctx, "STREAM.MSG.GET", map[string]string{"last_by_subj": keySubject + key}, &l); err != nil {
		return nil, 0, err
	}
	return l.value()
}

// subjects is the leader's answer about the stream, as far as it is read.
type subjects struct {
	State struct {
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
	Error *jetstream.APIError `json:"error"`
}

// keys lists, as the stream's leader knows them, the keys that match filter,
// also those that hold only a marker.
func (c *Configs) keys(ctx context.Context, filter string) ([]string, error) {
	var s subjects
	if err := c.ask(ctx, "STREAM.INFO", map[string]string{"subjects_filter": keySubject + filter}, &s); err != nil {
		return nil, err
	}
	if s.Error != nil {
		return nil, s.Error
	}
	keys := make([]string, 0, len(s.State.Subjects))
	for subj := range s.State.Subjects {
		keys = append(keys, strings.TrimPrefix(subj, keySubject))
	}
	return keys, nil
}

// ask puts a request about the bucket's stream to its leader.
func (c *Configs) ask(ctx context.Context, verb string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	body, err := schema.Marshal(request)
	if err != nil {
		return err
	}
	msg := &nats.Msg{Subject: apiPrefix(c.js.Options()) + verb + "." + configStream, Data: body}
	m, err := c.js.Conn().RequestMsgWithContext(ctx, msg)
	if err != nil {
		return err
	}
	return schema.Unmarshal(m.Data, answer)
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

// putSubject is where a key is written, which the same may have moved.
func (c *Configs) putSubject(key string) string {
	if p := apiPrefix(c.js.Options()); p != jetstream.DefaultAPIPrefix {
		return p + keySubject + key
	}
	return keySubject + key
}
