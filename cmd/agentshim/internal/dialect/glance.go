package dialect

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// trimmed is a payload without the mark that some Windows programs put before
// UTF-8, and without space around it.
func trimmed(payload []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(payload), []byte("\xef\xbb\xbf")))
}

// glance is what can be seen of a payload that cannot be read, or not whole:
// into is filled from the strings of the outermost object that stand before the
// fault. Of two of one name the first counts.
func glance(data []byte, into map[string]*string) {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			return
		}
		at := into[name.String()]
		value, err := dec.ReadValue()
		if err != nil {
			return
		}
		var s string
		if at != nil && *at == "" && value.Kind() == '"' && schema.Unmarshal(value, &s) == nil {
			*at = s
		}
	}
}

// The phases of a tool call, as keys name them.
const (
	before = "pre"
	after  = "post"
)

// keyed gives a tool call its keys: by the runtime's id of the call if there is
// one, else by what it is.
func (c *Call) keyed(phase string) {
	if id := c.Event.ToolUseID; id != "" {
		c.Key, c.ByID, c.Pair = phase+"/"+id, true, id
		return
	}
	same := c.Event
	same.SessionID += c.Subagent
	c.Pair = callHash(&same)
	c.Key = phase + "/" + c.Pair
}

// callHash is the same for all deliveries of a call that has no id. Numbers
// count as they are written: two that are one to a computer with 64 bits may be
// two to the tool.
func callHash(e *schema.Event) string {
	input := e.ToolInput.Clone()
	if input.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
		input = e.ToolInput
	}
	h := sha256.New()
	for _, part := range []string{e.SessionID, e.ToolName, string(input)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}
